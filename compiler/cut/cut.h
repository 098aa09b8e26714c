/// Cut says where a captured model is divided into stages.
///
///   sc::compile(model, {.inputs = {tokens}, .labels = {targets}, .loss = loss,
///                       .cut = sc::Balanced{.stages = 4}});
///   sc::compile(model, {..., .cut = sc::At{"layers.4", "layers.8"}});
///
/// A Cut is a value. The caller makes it or reads it from a file (cut_file.h); cut_into_stages.h
/// turns it into stages. An operator is identified by its number among the captured ones, in the
/// order of the forward.
#pragma once

#include <initializer_list>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "stagecraft/scheduler/costs/operator_cost.h"
#include "stagecraft/scheduler/costs/operator_list_hash.h"

namespace stagecraft {

/// CutOrigin names the file of a cut and the operators of the model for which it was written.
/// Other models refuse the cut: the numbers in it mean other operators there.
struct CutOrigin {
  std::string file;
  OperatorListHash operators;

  friend bool operator==(const CutOrigin&, const CutOrigin&) = default;
};

/// AtMarkers cuts at the module's own markers (markers.h), and makes one stage if there are none.
/// Any other cut overrides the markers.
struct AtMarkers {
  friend bool operator==(const AtMarkers&, const AtMarkers&) = default;
};

/// Balanced minimizes the time of the slowest stage, measured as the forward and backward times of
/// its operators. Among cuts within 3 % of that minimum it chooses the one with the fewest bytes
/// across borders.
struct Balanced {
  int stages = 1;
  /// The most bytes that a stage may hold: parameters, their gradients, and the bytes that one
  /// microbatch keeps.
  double memory_cap = std::numeric_limits<double>::infinity();
  /// The cost of every operator. If empty, compile measures them, which takes as long as about ten
  /// forwards and backwards of one microbatch.
  std::vector<OperatorCost> costs;

  friend bool operator==(const Balanced&, const Balanced&) = default;
};

/// At names the places where the stages after the first begin. A place is a path ("layers.4"),
/// which means the first operator that uses a parameter or buffer of this path or below it, or an
/// operator by its number ("op:12"). If the place lies inside a group that must stay together
/// (cut_points.h), the stage begins with that group.
struct At {
  std::vector<std::string> places;
  std::optional<CutOrigin> origin;  ///< of a file that names its model's operators

  At() = default;
  At(std::initializer_list<std::string> list) : places(list) {}
  explicit At(std::vector<std::string> list) : places(std::move(list)) {}

  friend bool operator==(const At&, const At&) = default;
};

/// OperatorSets lists the operators of every stage, for stage graphs that are not chains. Each
/// stage is a list of ranges [first, last] of operator numbers. Every operator is in one of them.
struct OperatorSets {
  std::vector<std::vector<std::pair<int, int>>> stages;
  std::optional<CutOrigin> origin = std::nullopt;  ///< as in At

  friend bool operator==(const OperatorSets&, const OperatorSets&) = default;
};

using Cut = std::variant<AtMarkers, Balanced, At, OperatorSets>;

}  // namespace stagecraft
