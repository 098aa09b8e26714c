/// The sub-commands of `stagecraft` in its runtime program, and their help texts.
#pragma once

#include <algorithm>
#include <array>
#include <string_view>

namespace stagecraft::tools {

struct RuntimeWord {
  std::string_view word;
  std::string_view about;
};

inline constexpr std::array kRuntimeWords{
    RuntimeWord{"train",
                "train by pipeline: a small Llama on the bytes of a text, or a model from a file"},
    RuntimeWord{"import",
                "say what is in a model's file, what is not supported, and where to cut it"},
    RuntimeWord{"profile", "measure what a model's operators and transfers cost, for planners"},
    RuntimeWord{
        "doctor",
        "check what commonly fails, on this machine and between hosts, and say how to mend it"},
    RuntimeWord{"launch",
                "run a program with workers on many hosts: by ssh, or in a step of Slurm"},
    RuntimeWord{"worker", "work for a cluster: run the stages it is sent"},
};

[[nodiscard]] constexpr bool is_runtime_word(std::string_view word) {
  return std::ranges::find(kRuntimeWords, word, &RuntimeWord::word) != kRuntimeWords.end();
}

/// Requires: is_runtime_word(word).
[[nodiscard]] constexpr std::string_view about(std::string_view word) {
  return std::ranges::find(kRuntimeWords, word, &RuntimeWord::word)->about;
}

}  // namespace stagecraft::tools
