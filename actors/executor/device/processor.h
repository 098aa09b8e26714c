/// ProcessorFacts holds the facts by which the libraries of a process choose the code that
/// computes. ATen, MKL and oneDNN have several implementations of an operator and choose one by the
/// processor. They sum in different orders, so different choices give different bits.
///
/// A worker reports its facts when it joins, the doctor asks hosts for them, and a checkpoint keeps
/// their text.
/// KC-1: the libraries choose once, when they first compute. Nothing here makes them choose except
///       hold_this_process, which must come before.
/// Thread: any, except for hold_this_process.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace stagecraft {

struct ProcessorFacts {
  std::string vendor, name;  ///< "GenuineIntel", and the model's name for people
  std::int32_t family = 0, model = 0;
  std::string capability;             ///< the code of ATen: "DEFAULT", "AVX2", "AVX512"
  std::vector<std::string> features;  ///< the CPU features that decide the choice
  /// environment variables that override the choice: "MKL_CBWR=AVX2"
  std::vector<std::string> variables;
};

template <class V>
decltype(auto) visit_fields(ProcessorFacts& m, V&& v) {
  return v(m.vendor, m.name, m.family, m.model, m.capability, m.features, m.variables);
}

/// Returns the current facts of this process, from its environment and its first processor.
[[nodiscard]] ProcessorFacts processor_of_this_process();

/// Returns all facts that decide the choice, in one line. Equal texts mean the same code.
[[nodiscard]] std::string choice_text(const ProcessorFacts& facts);

/// Returns the variables that hold the three libraries to a capability.
/// Errors: ClusterMember for a word that is no capability.
[[nodiscard]] const std::vector<std::string>& variables_that_hold(std::string_view capability);

/// Returns whether a process that can compute with `have` can be held to `wanted`.
[[nodiscard]] bool can_be_held(const std::string& have, const std::string& wanted);

/// Returns the facts of a process after it is held.
[[nodiscard]] ProcessorFacts held_to(ProcessorFacts facts, const std::string& capability);

/// Sets this process's variables to those of a capability.
/// Requires: this process has not computed, and no other thread reads the environment.
/// Errors: ClusterMember if the libraries have chosen differently before (KC-1).
void hold_this_process(const std::string& capability);

/// NamedProcessor is a process, by its name for people, and its facts.
using NamedProcessor = std::pair<std::string, ProcessorFacts>;

struct ProcessorDifference {
  bool certain = false;  ///< ATen computes with other code; else MKL or oneDNN may
  std::string what;      ///< "AVX2 on node-a; AVX512 on node-b, node-c"
  std::string remedy;
};

/// Returns the difference; nothing if all choose the same code.
[[nodiscard]] std::optional<ProcessorDifference> difference_of(
    const std::vector<NamedProcessor>& processes);

/// Returns "compute other bits: AVX2 on ...", to follow the name of the processes; to_string adds
/// the remedy.
[[nodiscard]] std::string what_text(const ProcessorDifference& difference);
[[nodiscard]] std::string to_string(const ProcessorDifference& difference);

}  // namespace stagecraft
