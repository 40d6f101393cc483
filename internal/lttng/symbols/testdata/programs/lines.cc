// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Functions of several kinds. Each begins at a line of its own.

namespace shop {

struct Order {
	int n;

	explicit Order(int n);
	virtual ~Order();
	int pay(int) const;
	int count() { return n; }
};

Order::Order(int n)
	: n(n)
{
}

Order::~Order() {}

int
Order::pay(
	int a) const
{
	auto add = [this](int b) {
		return b + n;
	};
	return add(a);
}

template <class T>
T most(T a, T b)
{
	return a < b ? b : a;
}

template int most<int>(int, int);
template long most<long>(long, long);

static inline int twice(int a) { return 2 * a; }

__attribute__((noinline)) static int local(int a)
{
	struct In {
		static int go(int b) { return twice(b); }
	};
	return In::go(a);
}

} // namespace shop

extern "C" int unused(int a) { return a; }

#line 100 "parser.y"
extern "C" __attribute__((noinline)) int parse(int a)
{
	return a + 1;
}

#line 200 "/usr/src/shop/main.cc"
int main(int argc, char **)
{
	shop::Order order(argc);
	return order.pay(1) + order.count() + shop::most(1, argc) + shop::local(argc) + parse(2);
}
