#include "stagecraft/scheduler/planners/balance/recipes.h"

#include <algorithm>
#include <initializer_list>
#include <string_view>
#include <utility>

#include <fmt/format.h>

namespace stagecraft {
namespace {

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

template <class Takes>
std::vector<Recipe> recipes_where(Takes&& takes) {
  std::vector<Recipe> made;
  for (const BuilderInfo& builder : builders()) {
    if (!builder.takes_graph && builder.name != "pfeife" && takes(builder)) {
      const std::vector<Recipe> own = recipes_of(builder);
      made.insert(made.end(), own.begin(), own.end());
    }
  }
  std::ranges::stable_sort(made, {}, [](const Recipe& recipe) {
    return std::pair(recipe.chunks, recipe.builder->name != "1f1b");
  });
  return made;
}

}  // namespace

bool has_two_copies(const BuilderInfo& builder) {
  return builder.name == "dualpipe" || builder.name == "chimera";
}

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

std::vector<Recipe> recipes_of(const BuilderInfo& builder) {
  std::vector<Recipe> made;
  if (builder.name == "kfkb") {
    add_with(made, builder, "k", {1, 2, 4}, 0);
  } else if (builder.name == "hanayo") {
    add_with(made, builder, "waves", {1, 2}, 2);
  } else if (builder.chunks == ChunkRule::Open) {
    for (const int chunks : {1, 2, 4}) {
      made.push_back({.builder = &builder, .chunks = chunks, .set = {}});
    }
  } else {
    made.push_back(
        {.builder = &builder, .chunks = builder.chunks == ChunkRule::Two ? 2 : 1, .set = {}});
  }
  return made;
}

std::vector<Recipe> recipes() {
  return recipes_where([](const BuilderInfo& builder) { return !has_two_copies(builder); });
}

std::vector<Recipe> recipes_for_chains() {
  return recipes_where([](const BuilderInfo&) { return true; });
}

}  // namespace stagecraft
