/// The registry lists the builders by name, with their parameters and constraints. The commands
/// `schedule` and `train` make their schedules here, and tests go through all builders.
///
/// A new builder is one source file with its header, one line in the table of registry.cc and one
/// test of its own. Pure; any thread.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "stagecraft/scheduler/builders/parts/build_request.h"
#include "stagecraft/scheduler/model/schedule.h"

namespace stagecraft {

/// A word of BuildRequest::set that a builder reads.
struct BuilderParameter {
  std::string_view name;
  std::string_view meaning;
  std::string_view fallback;  ///< the value if it is not set
};

/// Gives the number of stages per row.
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

/// Returns all builders, the most useful for a newcomer first.
[[nodiscard]] std::span<const BuilderInfo> builders();

/// Errors: UsageArgument for an unknown name, with the nearest known one.
[[nodiscard]] const BuilderInfo& find_builder(std::string_view name);

/// Returns the schedule that builder `name` makes for the request.
/// Errors: UsageArgument for an unknown name or parameter, or a value that is no number;
/// ScheduleParameter (rule V34) for illegal values, with the constraint and the nearest legal ones.
[[nodiscard]] Schedule build_schedule(std::string_view name, const BuildRequest& request);

}  // namespace stagecraft
