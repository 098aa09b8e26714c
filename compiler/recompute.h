/// Recompute: which parts of a model keep only their inputs from a microbatch's forward until its
/// backward, and run again right before that. Costs their forward once more, saves what autograd
/// would have kept.
///
///   sc::compile(model, {..., .recompute = sc::Recompute::stages()});
///
/// A value: made by the caller or parsed from a command line, resolved by recompute_stages.h.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace stagecraft {

struct Recompute {
  enum class What : std::uint8_t {
    Marked,   ///< what the module marks with sc::recompute (markers.h)
    Nothing,  ///< not even that
    Stages,   ///< whole stages
    Named     ///< what `names` says, and nothing that is marked beside it
  };
  What what = What::Marked;
  /// Each a stage's name, that of a marked region ("block" of sc::recompute("block", ...), the tag
  /// of an sc::region), or a path of parameters ("layers.3"): then from the first operator that
  /// uses a parameter or buffer of that path or below it to the last, in every stage that has some.
  std::vector<std::string> names;

  [[nodiscard]] static Recompute nothing() { return {.what = What::Nothing, .names = {}}; }
  [[nodiscard]] static Recompute stages() { return {.what = What::Stages, .names = {}}; }
  [[nodiscard]] static Recompute named(std::vector<std::string> names) {
    return {.what = What::Named, .names = std::move(names)};
  }

  friend bool operator==(const Recompute&, const Recompute&) = default;
};

/// Reads "none", "stage" or "NAME,...".
/// Errors: UsageArgument for an empty name.
[[nodiscard]] Recompute parse_recompute(std::string_view text);

}  // namespace stagecraft
