#include "run_time_limit.h"

#include <doctest/doctest.h>

namespace {

using gantry::RunTimeLimit;
using Clock = RunTimeLimit::Clock;
using std::chrono::milliseconds;
using std::chrono::seconds;

const Clock::time_point kStart = Clock::now();
Clock::time_point at(double s) { return kStart + milliseconds(static_cast<int64_t>(1000 * s)); }

}  // namespace

TEST_CASE("without a limit nothing is ever reached") {
  RunTimeLimit none;
  none.begin(int64_t{1} << 60);
  CHECK_FALSE(none.set());
  CHECK_FALSE(none.reached());
}

TEST_CASE("before there is something to save nothing is reached") {
  RunTimeLimit limit(Clock::now() - seconds(100), 1);
  CHECK_FALSE(limit.reached());
  limit.begin(0);
  CHECK(limit.reached());
}

TEST_CASE("twice the longest time between two looks is kept back") {
  RunTimeLimit limit(kStart, 100);
  limit.begin(0, at(10));
  CHECK_FALSE(limit.reached(at(13)));
  CHECK_FALSE(limit.reached(at(14)));
  CHECK_FALSE(limit.reached(at(40)));
  CHECK(limit.reached(at(90)));  // 50 s without a look: the next may be as long in coming
  RunTimeLimit steady(kStart, 100);
  steady.begin(0, at(10));
  double now = 10;
  while (!steady.reached(at(now))) now += 3;
  CHECK(now >= 94);
  CHECK(now < 97.1);
}

TEST_CASE("twice the longest save is kept back and before the first one what the state would take") {
  const auto first_reached = [](RunTimeLimit& limit, double now) {
    while (!limit.reached(at(now))) now += 0.125;
    return now;
  };
  RunTimeLimit unsaved(kStart, 100);
  unsaved.begin(1'000'000'000, at(1));  // 10 s
  CHECK(first_reached(unsaved, 1) == doctest::Approx(79.75));

  RunTimeLimit saved(kStart, 100);
  saved.begin(1'000'000'000, at(1));
  CHECK_FALSE(saved.reached(at(1.125)));
  saved.save_begins(at(1.125));
  saved.save_ends(at(3.125));
  CHECK_FALSE(saved.reached(at(3.25)));
  saved.save_begins(at(3.25));
  saved.save_ends(at(4.25));  // a shorter one makes nothing earlier
  CHECK(first_reached(saved, 4.375) == doctest::Approx(95.75));
}

TEST_CASE("the process began before now and not long ago") {
  const auto age = Clock::now() - gantry::process_start();
  CHECK(age >= seconds(0));
  CHECK(age < seconds(600));
}
