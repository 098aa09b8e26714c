/// Recompute selects the parts of a model that keep only their inputs from a microbatch's forward
/// until its backward, and run again right before the backward. This costs one more forward of
/// these parts and saves the memory that autograd would have kept.
///
///   sc::compile(model, {..., .recompute = sc::Recompute::stages()});
///
/// A Recompute is a value. The caller makes it or parses it from a command line; recompute_stages.h
/// resolves it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace stagecraft {

struct Recompute {
  enum class What : std::uint8_t {
    Marked,   ///< the parts that the module marks with sc::recompute (markers.h)
    Nothing,  ///< nothing, not even marked parts
    Stages,   ///< whole stages
    Named     ///< the parts in `names` only; marks are ignored
  };
  What what = What::Marked;
  /// Each name is that of a stage, that of a marked region ("block" of sc::recompute("block", ...),
  /// the tag of an sc::region), or a path of parameters ("layers.3"). A path selects, in every
  /// stage that has some, the operators from the first to the last one that uses a parameter or
  /// buffer of that path or below it.
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
