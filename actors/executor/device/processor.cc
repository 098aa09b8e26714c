#include "stagecraft/actors/executor/device/processor.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>

#include <ATen/Version.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "stagecraft/base/error.h"

namespace stagecraft {
namespace {

/// The features by which ATen, MKL and oneDNN choose.
constexpr std::array kFeatures{"avx2",
                               "fma",
                               "avx512f",
                               "avx512bw",
                               "avx512dq",
                               "avx512vl",
                               "avx512_vnni",
                               "avx512_bf16",
                               "avx512_fp16",
                               "avx_vnni",
                               "amx_tile"};

/// The variables that bind their choice.
constexpr std::array kVariables{"ATEN_CPU_CAPABILITY",
                                "MKL_CBWR",
                                "MKL_ENABLE_INSTRUCTIONS",
                                "ONEDNN_MAX_CPU_ISA",
                                "DNNL_MAX_CPU_ISA"};

/// Returns the capabilities from the narrowest to the widest.
const std::array<std::pair<std::string, std::vector<std::string>>, 3>& capabilities() {
  static const std::array<std::pair<std::string, std::vector<std::string>>, 3> all{{
      {"DEFAULT", {"ATEN_CPU_CAPABILITY=default", "MKL_CBWR=SSE4_2", "ONEDNN_MAX_CPU_ISA=SSE41"}},
      {"AVX2", {"ATEN_CPU_CAPABILITY=avx2", "MKL_CBWR=AVX2", "ONEDNN_MAX_CPU_ISA=AVX2"}},
      {"AVX512",
       {"ATEN_CPU_CAPABILITY=avx512", "MKL_CBWR=AVX512", "ONEDNN_MAX_CPU_ISA=AVX512_CORE"}},
  }};
  return all;
}

/// Returns the rank of a capability by width; -1 for another word.
int width_of(std::string_view capability) {
  const auto at = std::ranges::find_if(capabilities(),
                                       [&](const auto& one) { return one.first == capability; });
  return at == capabilities().end() ? -1 : static_cast<int>(at - capabilities().begin());
}

std::int32_t number_of(const std::string& text) {
  std::int32_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

/// Returns the facts of the first processor, without those that depend on the environment.
ProcessorFacts read_processor() {
  ProcessorFacts facts;
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line) && !line.empty();) {
    const std::size_t colon = line.find(": ");
    const std::string value = colon == std::string::npos ? "" : line.substr(colon + 2);
    if (line.starts_with("vendor_id")) {
      facts.vendor = value;
    } else if (line.starts_with("model name")) {
      facts.name = value;
    } else if (line.starts_with("model")) {
      facts.model = number_of(value);
    } else if (line.starts_with("cpu family")) {
      facts.family = number_of(value);
    } else if (line.starts_with("flags")) {
      std::istringstream words(value);
      for (std::string word; words >> word;) {
        if (std::ranges::find(kFeatures, word) != kFeatures.end()) {
          facts.features.push_back(word);
        }
      }
    }
  }
  std::ranges::sort(facts.features);
  return facts;
}

/// Chooses as ATen does, without making ATen choose (KC-1); a test compares the two.
std::string capability_of(const std::vector<std::string>& features, const char* variable) {
  const std::string wished = variable == nullptr ? "" : variable;
  for (const auto& [capability, variables] : capabilities()) {
    if (variables.front() == "ATEN_CPU_CAPABILITY=" + wished) {
      return capability;
    }
  }
  const auto all = [&](std::initializer_list<const char*> words) {
    return std::ranges::all_of(
        words, [&](const char* word) { return std::ranges::count(features, word) > 0; });
  };
  return all({"avx512vl", "avx512bw", "avx512dq", "fma"}) ? "AVX512"
         : all({"avx2", "fma"})                           ? "AVX2"
                                                          : "DEFAULT";
}

std::string name_of_variable(std::string_view variable) {
  return std::string(variable.substr(0, variable.find('=')));
}

/// Returns whether MKL and oneDNN choose by their variables alone.
bool is_bound(const ProcessorFacts& facts) {
  const auto has = [&](std::string_view name) {
    return std::ranges::any_of(facts.variables,
                               [&](const std::string& v) { return name_of_variable(v) == name; });
  };
  return has("MKL_CBWR") && (has("ONEDNN_MAX_CPU_ISA") || has("DNNL_MAX_CPU_ISA"));
}

/// Names of processes, by the text that describes them.
using ProcessGroups = std::map<std::string, std::vector<std::string>>;

/// Returns "AVX2 on node-a; AVX512 on this machine, node-b".
std::string text_of_groups(const ProcessGroups& groups) {
  constexpr std::size_t kMostNames = 8;
  std::string text;
  for (const auto& [what, names] : groups) {
    const std::size_t told = std::min(names.size(), kMostNames);
    text +=
        fmt::format("{}{} on {}{}",
                    text.empty() ? "" : "; ",
                    what,
                    fmt::join(names.begin(), names.begin() + static_cast<long>(told), ", "),
                    told < names.size() ? fmt::format(" and {} more", names.size() - told) : "");
  }
  return text;
}

std::string remedy_of_capabilities(const ProcessGroups& groups) {
  std::string narrowest = "AVX512";
  for (const auto& [capability, names] : groups) {
    // A program of another release may report an unknown capability.
    if (const int width = width_of(capability); width >= 0 && width < width_of(narrowest)) {
      narrowest = capability;
    }
  }
  return fmt::format(
      "train with --processor common (in a program: SpawnOptions::processor), or set {} in every "
      "line of the "
      "hosts' file and in the environment here: all compute alike then, at the speed of the "
      "weakest; or use hosts of one kind",
      fmt::join(variables_that_hold(narrowest), " "));
}

}  // namespace

ProcessorFacts processor_of_this_process() {
  static const ProcessorFacts processor = read_processor();
  ProcessorFacts facts = processor;
  facts.capability = capability_of(facts.features, std::getenv("ATEN_CPU_CAPABILITY"));
  for (const char* variable : kVariables) {
    if (const char* value = std::getenv(variable); value != nullptr) {
      facts.variables.push_back(fmt::format("{}={}", variable, value));
    }
  }
  return facts;
}

std::string choice_text(const ProcessorFacts& facts) {
  std::string text = fmt::format("{} {}", facts.capability, facts.vendor);
  if (!is_bound(facts)) {
    text += fmt::format(" family {} model {}", facts.family, facts.model);
    if (!facts.features.empty()) {
      text += fmt::format(" ({})", fmt::join(facts.features, " "));
    }
  }
  for (const std::string& variable : facts.variables) {
    text += " " + variable;
  }
  return text;
}

const std::vector<std::string>& variables_that_hold(std::string_view capability) {
  const int width = width_of(capability);
  if (width < 0) {
    throw Error(Errc::ClusterMember,
                fmt::format("expected DEFAULT, AVX2 or AVX512 to hold a process to, found \"{}\"",
                            capability));
  }
  return capabilities()[static_cast<std::size_t>(width)].second;
}

bool can_be_held(const std::string& have, const std::string& wanted) {
  return width_of(have) >= width_of(wanted);
}

ProcessorFacts held_to(ProcessorFacts facts, const std::string& capability) {
  facts.variables = variables_that_hold(capability);
  facts.capability = capability;
  return facts;
}

void hold_this_process(const std::string& capability) {
  const std::vector<std::string>& wanted = variables_that_hold(capability);
  if (processor_of_this_process().variables != wanted) {
    for (const char* variable : kVariables) {
      unsetenv(variable);
    }
    for (const std::string& variable : wanted) {
      const std::string name = name_of_variable(variable);
      setenv(name.c_str(), variable.substr(name.size() + 1).c_str(), /*overwrite=*/1);
    }
  }
  if (const std::string chosen = at::get_cpu_capability(); chosen != capability) {
    throw Error(Errc::ClusterMember,
                fmt::format("this process computes with {} already and cannot be held to {}, the "
                            "widest that all have: make the cluster before anything is computed, "
                            "or start the process with {}",
                            chosen,
                            capability,
                            fmt::join(wanted, " ")));
  }
}

std::optional<ProcessorDifference> difference_of(const std::vector<NamedProcessor>& processes) {
  ProcessGroups of_aten, of_all;
  for (const auto& [name, facts] : processes) {
    of_aten[facts.capability].push_back(name);
    of_all[choice_text(facts)].push_back(name);
  }
  if (of_aten.size() > 1) {
    return ProcessorDifference{.certain = true,
                               .what = text_of_groups(of_aten),
                               .remedy = remedy_of_capabilities(of_aten)};
  }
  if (of_all.size() > 1) {
    return ProcessorDifference{
        .certain = false,
        .what = text_of_groups(of_all),
        .remedy =
            "compare a short run with --verify; --processor common binds the choice of MKL and "
            "oneDNN, and so do MKL_CBWR and ONEDNN_MAX_CPU_ISA, the same in every line of the "
            "hosts' file and here"};
  }
  return std::nullopt;
}

std::string what_text(const ProcessorDifference& difference) {
  return fmt::format("{}: {}",
                     difference.certain ? "compute other bits"
                                        : "may compute other bits, as MKL and oneDNN choose their "
                                          "code by the processor",
                     difference.what);
}

std::string to_string(const ProcessorDifference& difference) {
  return fmt::format("{}; mend: {}", what_text(difference), difference.remedy);
}

}  // namespace stagecraft
