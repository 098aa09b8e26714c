/// Cut: where a captured model is divided into stages.
///
///   sc::compile(model, {.inputs = {tokens}, .labels = {targets}, .loss = loss,
///                       .cut = sc::Balanced{.stages = 4}});
///   sc::compile(model, {..., .cut = sc::At{"layers.4", "layers.8"}});
///
/// A value: made by the caller or read from a file (cut_file.h), made into stages by
/// cut_into_stages.h. An operator is called by its number among the captured ones, in the order of
/// the forward.
#pragma once

#include <initializer_list>
#include <limits>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "stagecraft/scheduler/operator_cost.h"

namespace stagecraft {

/// At the module's own markers (markers.h); one stage where it has none. Any other cut overrides
/// them.
struct AtMarkers {
  friend bool operator==(const AtMarkers&, const AtMarkers&) = default;
};

/// Where the slowest stage is fastest, by the time its operators take forward and backward; of
/// cuts within 3 % of that where the fewest bytes cross.
struct Balanced {
  int stages = 1;
  /// Most bytes that a stage may hold: parameters, their gradients, and what one microbatch keeps.
  double memory_cap = std::numeric_limits<double>::infinity();
  /// Of every operator; empty: they are measured while compiling, which takes as long as some ten
  /// forwards and backwards of one microbatch.
  std::vector<OperatorCost> costs;

  friend bool operator==(const Balanced&, const Balanced&) = default;
};

/// Every stage but the first begins at one of these: before the first operator that uses a
/// parameter or buffer of that path or below it ("layers.4"), or before an operator by its number
/// ("op:12"). Where such a place lies inside a group that must stay together (cut_points.h), the
/// stage begins with that group.
struct At {
  std::vector<std::string> places;

  At() = default;
  At(std::initializer_list<std::string> list) : places(list) {}
  explicit At(std::vector<std::string> list) : places(std::move(list)) {}

  friend bool operator==(const At&, const At&) = default;
};

/// The operators of every stage, for stage graphs that are not chains: ranges [first, last] of
/// their numbers. All operators are in one of them.
struct OperatorSets {
  std::vector<std::vector<std::pair<int, int>>> stages;

  friend bool operator==(const OperatorSets&, const OperatorSets&) = default;
};

using Cut = std::variant<AtMarkers, Balanced, At, OperatorSets>;

}  // namespace stagecraft
