/// Recipes are the schedules to try if the request asks for none: builders of the registry with
/// their chunks and parameters.
///
///     1f1b; interleaved chunks=2; interleaved chunks=4; kfkb k=2; hanayo waves=1; ...
///
/// Pure; any thread.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "stagecraft/scheduler/builders/registry.h"

namespace stagecraft {

struct Recipe {
  const BuilderInfo* builder = nullptr;
  int chunks = 1;  ///< stages per device
  std::map<std::string, std::string> set;

  /// Returns "interleaved chunks=2".
  [[nodiscard]] std::string name() const;
};

/// Returns whether the builder keeps two copies of the weights for two directions, which a cut into
/// stages cannot express.
[[nodiscard]] bool has_two_copies(const BuilderInfo& builder);

/// Returns the recipes of one builder, even of one with two copies or for stage graphs; those with
/// few chunks come first.
[[nodiscard]] std::vector<Recipe> recipes_of(const BuilderInfo& builder);

/// Returns the recipes for one copy of a chain of stages: 1F1B first, then those with few chunks.
[[nodiscard]] std::vector<Recipe> recipes();

/// Returns recipes() and the recipes that keep two copies of the model.
[[nodiscard]] std::vector<Recipe> recipes_for_chains();

}  // namespace stagecraft
