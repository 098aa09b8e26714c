#include "stagecraft/scheduler/planners/balance/recipes.h"

#include <algorithm>
#include <initializer_list>
#include <string_view>
#include <utility>

#include <fmt/format.h>

namespace stagecraft {
namespace {

/// Both directions keep two copies of the weights, which no cut into stages says.
bool has_two_copies(const BuilderInfo& builder) {
  return builder.name == "dualpipe" || builder.name == "chimera";
}

void add_open(std::vector<Recipe>& recipes, const BuilderInfo& builder) {
  for (const int chunks : {1, 2, 4}) {
    recipes.push_back({.builder = &builder, .chunks = chunks, .set = {}});
  }
}

void add_with(std::vector<Recipe>& recipes,
              const BuilderInfo& builder,
              const std::string& parameter,
              std::initializer_list<int> values,
              int chunks_per_value) {
  for (const int value : values) {
    recipes.push_back({.builder = &builder,
                       .chunks = chunks_per_value == 0 ? 1 : chunks_per_value * value,
                       .set = {{parameter, fmt::to_string(value)}}});
  }
}

}  // namespace

std::string Recipe::name() const {
  std::string name(builder->name);
  if (builder->chunks == ChunkRule::Open) {
    name += fmt::format(" chunks={}", chunks);
  }
  for (const auto& [parameter, value] : set) {
    name += fmt::format(" {}={}", parameter, value);
  }
  return name;
}

std::vector<Recipe> recipes() {
  std::vector<Recipe> made;
  for (const BuilderInfo& builder : builders()) {
    if (builder.takes_graph || has_two_copies(builder) || builder.name == "pfeife") {
      continue;
    }
    if (builder.name == "kfkb") {
      add_with(made, builder, "k", {2, 4}, 0);
    } else if (builder.name == "hanayo") {
      add_with(made, builder, "waves", {1, 2}, 2);
    } else if (builder.chunks == ChunkRule::Open) {
      add_open(made, builder);
    } else {
      made.push_back(
          {.builder = &builder, .chunks = builder.chunks == ChunkRule::Two ? 2 : 1, .set = {}});
    }
  }
  std::ranges::stable_sort(made, {}, [](const Recipe& recipe) {
    return std::pair(recipe.chunks, recipe.builder->name != "1f1b");
  });
  return made;
}

}  // namespace stagecraft
