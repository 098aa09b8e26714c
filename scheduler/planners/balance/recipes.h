/// Recipes: the schedules that are worth a try where none is asked for: builders of the registry
/// with their chunks and parameters.
///
///     1f1b; interleaved chunks=2; interleaved chunks=4; kfkb k=2; hanayo waves=1; ...
///
/// Pure; any thread.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "stagecraft/scheduler/registry.h"

namespace stagecraft {

struct Recipe {
  const BuilderInfo* builder = nullptr;
  int chunks = 1;  ///< stages of a device
  std::map<std::string, std::string> set;

  /// "interleaved chunks=2"
  [[nodiscard]] std::string name() const;
};

/// Of one builder, also of one with two copies or for stage graphs; those of few chunks first.
[[nodiscard]] std::vector<Recipe> recipes_of(const BuilderInfo& builder);

/// For one copy of a chain of stages: those of few chunks first, 1F1B before all others.
[[nodiscard]] std::vector<Recipe> recipes();

/// Likewise, and those that keep two copies of the model.
[[nodiscard]] std::vector<Recipe> recipes_for_chains();

}  // namespace stagecraft
