/// Filter selects nodes of a training DAG by their tags, for a directive of a strategy.
///
/// Users and strategy_of() write it; match() (dag/match.h) finds the nodes. A value.
/// FLT-1: a node matches if it has every tag of the filter with that number, and the filter's pass.
///       Without tags and pass a filter matches every node.
/// Source: Piper, section on filters.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stagecraft {

/// The tag of the stage, which every strategy knows, like that of the microbatch. sc::region() adds
/// others.
inline constexpr std::string_view kStageTag = "PP";
/// The usual tag of regions of experts, which ranks divide among them.
inline constexpr std::string_view kExpertTag = "EP";
inline constexpr std::string_view kMicrobatchTag = "MB";
inline constexpr std::string_view kPassTag = "PASS";

enum class Pass : std::uint8_t {
  F,   ///< forward
  B,   ///< backward, whole or in halves
  BI,  ///< the half of a backward that computes gradients of inputs
  BW,  ///< the half that computes gradients of weights
};

struct Filter {
  struct Tag {
    std::string name;
    std::optional<int> number;  ///< none: "*", any number

    friend bool operator==(const Tag&, const Tag&) = default;
  };
  std::vector<Tag> tags;
  std::optional<Pass> pass;

  /// Returns the number that the filter requires of a tag; nothing if it requires none or any.
  [[nodiscard]] std::optional<int> number_of(std::string_view tag) const;

  friend bool operator==(const Filter&, const Filter&) = default;
};

/// Returns "F", "B", "BI" or "BW".
[[nodiscard]] std::string_view to_string(Pass pass);
/// Returns "{PP:0,MB:1,PASS:F}"; "{}" for a filter that matches everything.
[[nodiscard]] std::string to_string(const Filter& filter);

}  // namespace stagecraft
