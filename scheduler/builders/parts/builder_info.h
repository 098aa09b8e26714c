/// BuilderInfo is a builder's line in the registry: its name, its parameters and its constraints.
///
/// registry.cc holds one for each builder; check_request() judges requests by it. A value; any
/// thread.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "stagecraft/scheduler/builders/parts/build_request.h"
#include "stagecraft/scheduler/model/schedule.h"

namespace stagecraft {

/// BuilderParameter is a word of BuildRequest::set that a builder reads.
struct BuilderParameter {
  std::string_view name;
  std::string_view meaning;
  std::string_view fallback;  ///< the value if it is not set
};

/// ChunkRule gives the number of stages per row.
enum class ChunkRule : std::uint8_t {
  One,
  Two,
  Open,         ///< BuildRequest::chunks; 2 if it is not set
  ByParameter,  ///< given by the builder's first parameter
};

struct BuilderInfo {
  std::string_view name;
  std::string_view summary;
  std::string_view constraint;  ///< on devices P and microbatches M; empty: any from 1 on
  ChunkRule chunks = ChunkRule::One;
  bool takes_graph = false;
  bool takes_costs = false;
  std::vector<BuilderParameter> parameters;
  Schedule (*build)(const BuildRequest&) = nullptr;
};

}  // namespace stagecraft
