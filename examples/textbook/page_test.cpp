// A page that says "agrees" where something differs would make every line of the program worthless.

#define BOOST_TEST_MODULE textbook_page
#include "page.hpp"

#include <boost/test/unit_test.hpp>

#include <cmath>
#include <vector>

using textbook::Page;

namespace {

/// Whether the one line that `f` writes agrees, and says so.
template <class F>
bool agrees(F f) {
  Page page;
  f(page);
  const std::string text = page.text();
  BOOST_TEST(page.lines() == 1);
  const bool yes = page.agreeing() == 1;
  BOOST_TEST((text.find("agrees") != std::string::npos) == yes);
  BOOST_TEST((text.find("DIFFERS") != std::string::npos) == !yes);
  return yes;
}
bool printed(std::vector<float> got, const char* text) {
  return agrees([&](Page& p) { p.as_printed("x", got, text); });
}

}  // namespace

BOOST_AUTO_TEST_CASE(every_digit_that_is_printed_counts) {
  BOOST_TEST(printed({0.4711f, 0.2645f}, "0.471 0.264"));
  BOOST_TEST(!printed({0.4711f, 0.2651f}, "0.471 0.264"));
  BOOST_TEST(printed({3.00928f}, "3.009"));
  BOOST_TEST(!printed({3.00928f}, "3.010"));
  BOOST_TEST(printed({3.00928f}, "3.01"));
  BOOST_TEST(printed({0.99995f}, "0.99995"));
  BOOST_TEST(!printed({0.9999f}, "0.99995"));
  BOOST_TEST(!printed({-2.0f}, "2"));
}

BOOST_AUTO_TEST_CASE(as_many_numbers_as_are_printed) {
  BOOST_TEST(!printed({1}, "1 2"));
  BOOST_TEST(!printed({1, 2}, "1"));
  BOOST_TEST(!printed({}, "1"));
}

BOOST_AUTO_TEST_CASE(no_number_agrees_with_nothing) {
  BOOST_TEST(!printed({NAN}, "0"));
  BOOST_TEST(!agrees([](Page& p) { p.close("x", NAN, 0, 1, 3); }));
  BOOST_TEST(!agrees([](Page& p) { p.rounding("x", NAN, 1); }));
  BOOST_TEST(!agrees([](Page& p) { p.at_most("x", NAN, 1, 3); }));
  BOOST_TEST(!agrees([](Page& p) { p.more_than("x", NAN, 1, 3); }));
}

BOOST_AUTO_TEST_CASE(bounds) {
  BOOST_TEST(agrees([](Page& p) { p.close("x", 16.3, 16, 0.32, 1); }));
  BOOST_TEST(!agrees([](Page& p) { p.close("x", 16.4, 16, 0.32, 1); }));
  BOOST_TEST(agrees([](Page& p) { p.rounding("x", 0, 1e-6); }));
  BOOST_TEST(!agrees([](Page& p) { p.rounding("x", 2e-6, 1e-6); }));
  BOOST_TEST(!agrees([](Page& p) { p.rounding("x", -1, 1e-6); }));  // not a distance
  BOOST_TEST(!agrees([](Page& p) { p.more_than("x", 1, 1, 0); }));
  BOOST_TEST(!agrees([](Page& p) { p.count("x", 1, 0); }));
}
