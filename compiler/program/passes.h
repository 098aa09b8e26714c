/// NamedPass is one step of a compilation: a function that reads a state and adds to it. A
/// compilation is a list of passes, so the list shows the steps in order.
///
///   constexpr NamedPass<Compilation> kPasses[] = {{"capture", capture}, {"cut", cut}};
///   const std::vector<PassTime> times = run_passes(kPasses, compilation);
///
/// compile has such a list (compile.cc).
#pragma once

#include <chrono>
#include <cstddef>
#include <string_view>
#include <vector>

#include "stagecraft/compiler/program/pass_time.h"

namespace stagecraft {

template <class State>
struct NamedPass {
  std::string_view name;
  void (*run)(State& state);
};

/// Runs the passes in their order, each on the state that the ones before it left. Returns the time
/// of each. Errors: those of the first pass that throws; the later ones do not run.
template <class State, std::size_t N>
[[nodiscard]] std::vector<PassTime> run_passes(const NamedPass<State> (&passes)[N], State& state) {
  std::vector<PassTime> times;
  for (const NamedPass<State>& pass : passes) {
    const auto begin = std::chrono::steady_clock::now();
    pass.run(state);
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
    times.push_back({pass.name, taken.count()});
  }
  return times;
}

}  // namespace stagecraft
