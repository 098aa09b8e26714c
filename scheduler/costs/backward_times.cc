#include "stagecraft/scheduler/costs/backward_times.h"

#include <fmt/format.h>

#include "stagecraft/base/error.h"

namespace stagecraft {
namespace {

/// The time of both halves relative to the whole, and the input half's share of it.
struct Shares {
  double halves = 1;
  double input = 0.5;
};

Shares shares_of(const Durations& times) {
  const double halves = times.backward_input + times.backward_weight;
  if (times.backward <= 0 || halves <= 0) {
    return {};
  }
  return {.halves = halves / times.backward, .input = times.backward_input / halves};
}

double rest(double halves, double one, const char* stated, const char* absent) {
  if (one > halves) {
    throw Error(Errc::UsageArgument,
                fmt::format("{0} is {1:g}, which leaves nothing of a backward of {2:g} for {3}; "
                            "give {3} too, or a larger B",
                            stated,
                            one,
                            halves,
                            absent));
  }
  return halves - one;
}

}  // namespace

std::optional<std::string> set_backward(Durations& times,
                                        const StatedBackward& stated,
                                        bool known) {
  const auto& [whole, input, weight] = stated;
  const Shares shares = known ? shares_of(times) : Shares{};
  times.backward = whole.value_or(times.backward);
  times.backward_input = input.value_or(times.backward_input);
  times.backward_weight = weight.value_or(times.backward_weight);
  if (whole && input && weight) {
    return std::nullopt;
  }
  if (!whole) {
    if (!input && !weight) {
      return std::nullopt;
    }
    if (!known && !(input && weight)) {
      throw Error(Errc::UsageArgument,
                  fmt::format("{} is given without B and without {}; give B, or I and W",
                              input ? "I" : "W",
                              input ? "W" : "I"));
    }
    times.backward = (times.backward_input + times.backward_weight) / shares.halves;
    return shares.halves == 1 ? "lacks B: it is the sum of I and W"
                              : "lacks B: it has the usual proportion to I and W";
  }
  const double halves = *whole * shares.halves;
  if (input) {
    times.backward_weight = rest(halves, *input, "I", "W");
    return "lacks W: it is what I leaves of B";
  }
  if (weight) {
    times.backward_input = rest(halves, *weight, "W", "I");
    return "lacks I: it is what W leaves of B";
  }
  times.backward_input = halves * shares.input;
  times.backward_weight = halves - times.backward_input;
  return shares.halves == 1 && shares.input == 0.5
             ? "lacks I and W: each is half of B"
             : "lacks I and W: they divide B in the usual proportion";
}

}  // namespace stagecraft
