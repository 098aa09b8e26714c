/// The registry: builders by name, with their parameters and constraints, for commands and for
/// tests that go through all of them.
///
/// A new builder is one source file, one line here and one test. Pure; any thread.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "stagecraft/scheduler/costs.h"
#include "stagecraft/scheduler/schedule.h"
#include "stagecraft/scheduler/stage_graph.h"

namespace stagecraft {

struct BuildRequest {
  int devices = 0;  ///< rows; 0 where the graph says how many
  int microbatches = 0;
  std::optional<int> chunks;               ///< stages per row, for builders that leave it open
  std::optional<StageGraph> graph;         ///< for the builders of stage DAGs
  std::map<std::string, std::string> set;  ///< further parameters by name
  std::optional<Costs> costs;              ///< for the builders that look at costs
};

struct BuilderParameter {
  std::string_view name;
  std::string_view meaning;
  std::string_view fallback;  ///< what it is when not set
};

enum class ChunkRule : std::uint8_t { One, Two, Open, ByParameter };

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

/// Returns all builders, in the order in which people should meet them.
[[nodiscard]] std::span<const BuilderInfo> builders();

/// Errors: UsageArgument for an unknown name, suggesting the nearest.
[[nodiscard]] const BuilderInfo& find_builder(std::string_view name);

/// Returns the schedule that `name` makes of the request.
/// Errors: UsageArgument for an unknown name or parameter, or a value that is no number;
/// ScheduleParameter (rule V34) for illegal values, with the constraint and the nearest legal ones.
[[nodiscard]] Schedule build_schedule(std::string_view name, const BuildRequest& request);

}  // namespace stagecraft
