// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

"use strict";
{
  // Waits between two requests, in milliseconds: after a change, and at most while nothing changes.
  const shortest = 2000, longest = 5000, patience = 20000;
  let wait = shortest, tag = "", timer = 0, looking = false, pressed = false;

  // change makes a node equal to another one. A person's input, focus and opened details stay.
  function change(from, to) {
    if (from.nodeType !== Node.ELEMENT_NODE) {
      if (from.data !== to.data) from.data = to.data;
      return;
    }
    for (const name of from.getAttributeNames()) {
      if (name !== "open" && !to.hasAttribute(name)) from.removeAttribute(name);
    }
    for (const name of to.getAttributeNames()) {
      if (name !== "open" && from.getAttribute(name) !== to.getAttribute(name)) from.setAttribute(name, to.getAttribute(name));
    }
    if (from.matches("input, select")) return;
    const wanted = new Set(Array.from(to.children, e => e.id)), known = new Map();
    for (const e of Array.from(from.children)) {
      if (e.id && !wanted.has(e.id)) e.remove();
      else if (e.id) known.set(e.id, e);
    }
    let at = from.firstChild;
    for (const child of Array.from(to.childNodes)) {
      const same = child.id ? known.get(child.id) : at && !at.id && at.nodeName === child.nodeName ? at : null;
      if (same && same === at) at = at.nextSibling;
      else from.insertBefore(same || child, at);
      if (same) change(same, child);
    }
    while (at) {
      const next = at.nextSibling;
      at.remove();
      at = next;
    }
  }

  function note(text) {
    const place = document.getElementById("stale");
    if (place.textContent !== text) place.textContent = text;
    place.hidden = text === "";
  }

  // look requests the page, and shows what changed.
  async function look() {
    looking = true;
    let changed = false;
    try {
      const answer = await fetch(location.href, {cache: "no-store", headers: tag ? {"If-None-Match": tag} : {}, signal: AbortSignal.timeout(patience)});
      if (answer.status !== 304) {
        const page = new DOMParser().parseFromString(await answer.text(), "text/html");
        if (!answer.ok) throw new Error((page.querySelector("#problem") || page.body).textContent.trim().slice(0, 300));
        changed = !pressed; // a click must not hit another element than the pressed one
        if (changed) {
          change(document.querySelector("main"), page.querySelector("main"));
          tag = answer.headers.get("ETag") || "";
        }
      }
      note("");
    } catch (error) {
      note("This page is not current: " + (error instanceof TypeError || error.name === "TimeoutError" ? "the collector does not answer" : error.message) + ".");
    }
    looking = false;
    wait = changed ? shortest : Math.min(wait * 1.5, longest);
    plan(wait);
  }

  // plan requests the page again after a time. In the background the page is not requested.
  function plan(after) {
    clearTimeout(timer);
    if (!document.hidden && !looking) timer = setTimeout(look, after);
  }

  document.addEventListener("visibilitychange", () => plan(0));
  for (const [event, is] of [["pointerdown", true], ["pointerup", false], ["pointercancel", false]]) {
    document.addEventListener(event, () => { pressed = is; }, true);
  }
  // Commands that stop a program need a second click.
  document.addEventListener("submit", event => {
    const question = event.submitter && event.submitter.dataset.confirm;
    if (question && !confirm(question)) event.preventDefault();
  });
  if (document.querySelector("main[data-live]")) plan(shortest);

  // measure sends a form of the page that takes a while, and shows the result in place of it.
  async function measure(place) {
    const form = place.querySelector("form");
    form.querySelector("button").disabled = true;
    place.querySelector(".wait").hidden = false;
    let text = "";
    try {
      const answer = await fetch(form.action, {method: "POST", body: new URLSearchParams(new FormData(form))});
      text = await answer.text();
      if (answer.ok) {
        change(place, new DOMParser().parseFromString(text, "text/html").getElementById(place.id));
        text = "";
      }
    } catch {
      text = "The collector does not answer.";
    }
    if (text) {
      place.querySelector(".wait").textContent = text;
      form.querySelector("button").disabled = false;
    }
  }

  for (const place of document.querySelectorAll("[data-measure]")) {
    place.addEventListener("submit", event => {
      event.preventDefault();
      measure(place);
    });
    if (document.hidden) document.addEventListener("visibilitychange", () => measure(place), {once: true});
    else measure(place);
  }
}
