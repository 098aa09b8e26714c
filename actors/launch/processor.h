/// ProcessorFacts: by what the libraries of a process choose the code that they compute with. ATen,
/// MKL and oneDNN have several codes for an operator, which sum in other orders, so processes that
/// choose otherwise end with other bits.
///
/// A worker says them when it joins, the doctor asks hosts for them, a checkpoint keeps their text.
/// KC-1: the libraries choose once, when they compute for the first time. Nothing here makes them
///       choose but hold_this_process, which has to come before.
/// Thread: any, but hold_this_process.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace stagecraft {

struct ProcessorFacts {
  std::string vendor, name;  ///< "GenuineIntel", and the model as people call it
  std::int32_t family = 0, model = 0;
  std::string capability;              ///< what ATen computes with: "DEFAULT", "AVX2", "AVX512"
  std::vector<std::string> features;   ///< of those by which libraries choose
  std::vector<std::string> variables;  ///< by which people do: "MKL_CBWR=AVX2"
};

template <class V>
decltype(auto) visit_fields(ProcessorFacts& m, V&& v) {
  return v(m.vendor, m.name, m.family, m.model, m.capability, m.features, m.variables);
}

/// What holds for this process now, by its environment and its first processor.
[[nodiscard]] ProcessorFacts processor_of_this_process();

/// All by which the choice is made, in one line. Equal texts: the same code.
[[nodiscard]] std::string choice_text(const ProcessorFacts& facts);

/// The variables that hold the three libraries to a capability.
/// Errors: ClusterMember for a word that is none.
[[nodiscard]] const std::vector<std::string>& variables_that_hold(std::string_view capability);

/// Whether a process that can compute with `have` can be held to `wanted`.
[[nodiscard]] bool can_be_held(const std::string& have, const std::string& wanted);

/// The facts of a process once it is held.
[[nodiscard]] ProcessorFacts held_to(ProcessorFacts facts, const std::string& capability);

/// Sets this process's variables to those of a capability.
/// Requires: nothing has been computed, and no other thread reads the environment.
/// Errors: ClusterMember when the libraries have chosen otherwise before (KC-1).
void hold_this_process(const std::string& capability);

/// A process, by the name that people are told, and its facts.
using NamedProcessor = std::pair<std::string, ProcessorFacts>;

struct ProcessorDifference {
  bool certain = false;  ///< ATen computes with other code; else MKL or oneDNN may
  std::string what;      ///< "AVX2 on node-a; AVX512 on node-b, node-c"
  std::string mend;
};

/// Nothing where all choose alike.
[[nodiscard]] std::optional<ProcessorDifference> difference_of(
    const std::vector<NamedProcessor>& processes);

/// "compute other bits: AVX2 on ...", after the name of those that do; to_string has the mend too.
[[nodiscard]] std::string what_text(const ProcessorDifference& difference);
[[nodiscard]] std::string to_string(const ProcessorDifference& difference);

}  // namespace stagecraft
