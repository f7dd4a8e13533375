#include "plan.h"

#include <gantry/error.h>
#include <gantry/text.h>

#include <algorithm>
#include <cstdlib>
#include <random>
#include <string>

namespace stop_and_go {
namespace {

using gantry::Mode;

std::string point_of(const gantry::Recording::Entry& entry) {
  for (const gantry::Recording::Value& value : entry.values)
    if (value.field == "point" || value.field == "point/0") return value.text;
  return {};
}

/// Of training moments from `first` on, up to the last one: they belong to a window that ends after `iteration`.
void close_window(std::vector<Moment>& moments, std::size_t first, int64_t iteration) {
  for (std::size_t i = first; i < moments.size(); ++i)
    if (moments[i].place.mode == Mode::train) moments[i].iteration = iteration;
}

std::string there_are(const Course& course, Mode mode) {
  const int64_t count = course.count(mode);
  const char* noun = mode == Mode::train ? "iteration" : mode == Mode::eval ? "evaluation batch" : "test batch";
  return gantry::cat("the run has ", count == 0 ? "no" : gantry::cat(count), " ", noun,
                     count == 1            ? ""
                     : mode == Mode::train ? "s"
                                           : "es");
}

const Moment& find(const Course& course, const Place& place) {
  const Moment* first = nullptr;
  for (const Moment& moment : course.moments) {
    if (moment.place == place) return moment;
    if (first == nullptr && moment.place.mode == place.mode && moment.place.number > 0) first = &moment;
  }
  std::string message = gantry::cat("cannot stop ", place.sentence(), ": ", there_are(course, place.mode));
  if (first != nullptr && place.number < first->place.number)
    message += gantry::cat(", and the first one is number ", first->place.number, ": it goes on from a checkpoint");
  throw gantry::Error(message);
}

std::vector<Moment> at_places(const std::vector<Place>& places, const Course& course) {
  std::vector<Moment> stops;
  for (const Place& place : places) stops.push_back(find(course, place));
  return stops;
}

std::vector<Moment> every(int64_t interval, const Course& course) {
  std::vector<Moment> stops;
  for (const Moment& moment : course.moments)
    if (moment.place.mode == Mode::train && moment.place.number > 0 && moment.place.number % interval == 0 &&
        (stops.empty() || stops.back().window != moment.window))
      stops.push_back(moment);
  if (stops.empty())
    throw gantry::Error(gantry::cat("cannot stop every ", interval, " iterations: ", there_are(course, Mode::train)));
  return stops;
}

/// Without replacement, each place as likely as any other.
std::vector<Moment> drawn(int64_t number, uint64_t seed, const Course& course) {
  std::vector<Moment> pool = course.moments, stops;
  std::mt19937_64 generator(seed);
  while (!pool.empty() && static_cast<int64_t>(stops.size()) < number) {
    const std::size_t i = generator() % pool.size();
    stops.push_back(pool[i]);
    std::erase_if(pool, [&](const Moment& moment) { return moment.window == stops.back().window; });
  }
  if (static_cast<int64_t>(stops.size()) < number)
    throw gantry::Error(
        gantry::cat("cannot stop at ", number, " places: the run has ", stops.size(), " that are not the same"));
  return stops;
}

}  // namespace

int64_t Course::count(Mode mode) const {
  return std::count_if(moments.begin(), moments.end(),
                       [&](const Moment& moment) { return moment.place.mode == mode && moment.place.number > 0; });
}

Course read_course(const gantry::Recording& event_order, const Before& before) {
  Course course;
  int64_t eval = before.eval, test = before.test, window = 0;
  std::size_t open = 0;  // the first moment of the window that is open
  bool begun = false;
  const std::vector<gantry::Recording::Entry>& entries = event_order.entries;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const gantry::Recording::Entry& entry = entries[i];
    const std::string point = point_of(entry);
    if (point == "before_step") ++course.steps;
    if (point == "before_epoch" && entry.mode == "train" && entry.iteration == 0 && !begun)
      course.moments.push_back({{Mode::train, 0}, 0, window++, entry.epoch, false});
    begun = begun || point == "before_epoch";
    if (point == "after_all_iter" && entry.mode == "train" && !course.moments.empty())
      for (auto last = course.moments.rbegin(); last != course.moments.rend(); ++last)
        if (last->place.mode == Mode::train) {
          last->ends_epoch = true;
          break;
        }
    if (point != "after_iter") continue;
    if (entry.mode != "train") {
      const bool evaluation = entry.mode == "eval";
      const Place place{evaluation ? Mode::eval : Mode::test, evaluation ? ++eval : ++test};
      course.moments.push_back({place, entry.iteration, window++, entry.epoch, false});
      open = course.moments.size();
      continue;
    }
    if (course.iterations++ == 0) open = course.moments.size();
    course.moments.push_back({{Mode::train, entry.iteration + 1}, entry.iteration + 1, window, entry.epoch, false});
    const bool closes = i + 1 >= entries.size() || point_of(entries[i + 1]) == "before_step";
    if (!closes) continue;
    close_window(course.moments, open, entry.iteration + 1);
    open = course.moments.size();
    ++window;
  }
  return course;
}

std::vector<Moment> plan_stops(const Arguments& arguments, const Course& course) {
  std::vector<Moment> stops;
  // A kill waits for nothing.
  Course used = course;
  if (arguments.kill())
    for (std::size_t i = 0; i < used.moments.size(); ++i) used.moments[i].window = static_cast<int64_t>(i);
  switch (arguments.stops) {
    case Arguments::Stops::at_places:
      stops = at_places(arguments.places, used);
      break;
    case Arguments::Stops::every:
      stops = every(arguments.every, used);
      break;
    case Arguments::Stops::random:
      stops = drawn(arguments.random, arguments.seed, used);
      break;
  }
  const auto position = [&](const Moment& moment) {
    return std::find_if(used.moments.begin(), used.moments.end(),
                        [&](const Moment& other) { return other.place == moment.place; });
  };
  std::sort(stops.begin(), stops.end(), [&](const Moment& a, const Moment& b) { return position(a) < position(b); });
  for (std::size_t i = 1; i < stops.size(); ++i)
    if (stops[i].window == stops[i - 1].window)
      throw gantry::Error(gantry::cat("the stops ", stops[i - 1].place.sentence(), " and ", stops[i].place.sentence(),
                                      " are one: both wait for the end of the window, after iteration ",
                                      stops[i].iteration, "; leave one of them out"));
  return stops;
}

Moment middle_of(const Course& course, const std::set<int64_t>& saved) {
  const Moment* best = nullptr;
  int64_t best_distance = 0;
  int64_t first = -1, last = 0;
  for (const Moment& moment : course.moments) {
    if (moment.place.mode != Mode::train) continue;
    if (first < 0) first = moment.iteration;
    last = moment.iteration;
  }
  for (const Moment& moment : course.moments) {
    if (moment.place.mode != Mode::train || moment.place.number == 0 || moment.place.number != moment.iteration)
      continue;
    int64_t distance = std::abs(2 * moment.iteration - (first + last));
    if (moment.ends_epoch || saved.contains(moment.iteration)) distance += 4 * (last - first + 1);
    if (best != nullptr && distance >= best_distance) continue;
    best = &moment;
    best_distance = distance;
  }
  if (best == nullptr) throw gantry::Error("the run has no iteration to stop after");
  return *best;
}

}  // namespace stop_and_go
