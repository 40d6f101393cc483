// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Names of every kind that C++ has.

#include <cstdlib>
#include <iostream>
#include <map>
#include <string>
#include <vector>

namespace shop {

struct Order {
	int n = 0;

	Order();
	virtual ~Order();
	int pay(int) const;
	int pay(double);
	static int count(const std::string &);
	bool operator<(const Order &) const;
	Order &operator<<(int);
	int operator()(int);
	operator std::string() const;
	void *operator new(std::size_t);
	int operator[](int);
	Order *operator->();

	struct Line {
		int sum();
	};
};

Order::Order() {}
Order::~Order() {}
int Order::pay(int a) const { return [this](int b) { return b + n; }(a); }
int Order::pay(double) { return 2; }
int Order::count(const std::string &s) { return s.size(); }
bool Order::operator<(const Order &o) const { return n < o.n; }
Order &Order::operator<<(int) { return *this; }
int Order::operator()(int a)
{
	auto outer = [&](int q) { return [&] { return q + a; }(); };
	return outer(3);
}
Order::operator std::string() const { return ""; }
void *Order::operator new(std::size_t size) { return std::malloc(size); }
int Order::operator[](int i) { return i; }
Order *Order::operator->() { return this; }
int Order::Line::sum() { return 1; }

template <class T> T most(T a, T b)
{
	auto same = [](T x) { return x; };
	return a < b ? same(b) : same(a);
}

template <class T> struct Box {
	T t;
	template <class U> U as(U u) const { return u; }
	T get() const & { return t; }
};

template int Box<std::vector<int>>::as<int>(int) const;
template struct Box<std::map<int, std::string>>;
template int most<int>(int, int);

namespace {
struct Hidden {
	int f() { return 3; }
};
int hidden() { return Hidden().f(); }
} // namespace

std::string tagged() { return "x"; }

auto lambda = [](int a) { return a; };

static int local(int a)
{
	struct In {
		static int go(int b) { return b; }
	};
	return In::go(a);
}

} // namespace shop

int call(int (*f)(int)) { return f(1); }

extern "C" int plain(int a) { return a; }

int main()
{
	shop::Order *order = new shop::Order;
	std::cout << (*order)(1) + shop::hidden() + shop::local(3) + call(plain) + shop::lambda(2) + shop::most(2.0, 1.0) << std::endl;
}
