/// regions_of: which operators of a chunk become one node of autograd each, and why others do not.
///
/// Chains of element-wise operators, and what works along the last dimension, over the same rows.
/// A region runs where its last operator stands.
///
/// RG-1: nobody reads what a region makes before it has run, and it reads nothing that is written
///       in place.
/// RG-2: gradients of a value that is read by several are added in the order of the operators, in
///       a region or not: no reader from outside stands among those of the region unless a sum has
///       two parts; and where a region adds several itself, later readers get the value from it
///       (Region::handed_on), so that what they send comes first.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "stagecraft/compiler/stage_program.h"

namespace stagecraft {

struct Region {
  std::vector<std::size_t> nodes;  ///< of the chunk, ascending
  std::vector<ValueId> inputs;
  std::vector<ValueId> outputs;    ///< that others read
  std::vector<ValueId> handed_on;  ///< inputs that later nodes read as outputs of the region
};

/// An operator that could be in a region and is not.
struct LeftAlone {
  std::size_t node = 0;
  std::string why;
};

struct Regions {
  std::vector<Region> all;  ///< in the order in which they run
  std::vector<LeftAlone> left;
};

/// `chunk`: one of the stage's.
[[nodiscard]] Regions regions_of(const StageProgram& stage, const Chunk& chunk);

/// "add rms_norm", for people.
[[nodiscard]] std::string names_of(const Chunk& chunk, const Region& region);

/// Equal for regions that compute the same in every way, wherever they stand.
[[nodiscard]] std::string signature_of(const Chunk& chunk, const Region& region);

}  // namespace stagecraft
