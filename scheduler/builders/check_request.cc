#include "stagecraft/scheduler/builders/check_request.h"

#include <algorithm>

#include <fmt/format.h>

#include "stagecraft/base/count_text.h"
#include "stagecraft/base/error.h"

namespace stagecraft {
namespace {

void check_parameters(const BuilderInfo& builder, const BuildRequest& request) {
  for (const auto& [name, value] : request.set) {
    if (std::ranges::find(builder.parameters, name, &BuilderParameter::name) ==
        builder.parameters.end()) {
      std::string known;
      for (const BuilderParameter& p : builder.parameters) {
        known += fmt::format("{}{}", known.empty() ? "" : ", ", p.name);
      }
      throw Error(Errc::UsageArgument,
                  fmt::format("{} has no parameter '{}'; it has {}",
                              builder.name,
                              name,
                              known.empty() ? "none" : known));
    }
  }
}

void check_chunks(const BuilderInfo& builder, const BuildRequest& request) {
  if (!request.chunks || builder.chunks == ChunkRule::Open) {
    return;
  }
  const int chunks = *request.chunks;
  if (builder.chunks == ChunkRule::ByParameter) {
    throw Error(Errc::UsageArgument,
                fmt::format("{} sets its chunks by the parameter {}, not by a number of chunks",
                            builder.name,
                            builder.parameters.front().name));
  }
  const int exact = builder.chunks == ChunkRule::Two ? 2 : 1;
  if (chunks != exact) {
    throw Error(Errc::ScheduleParameter,
                fmt::format("{} needs exactly {} {} per device, got {}; nearest: {}",
                            builder.name,
                            exact,
                            exact == 1 ? "chunk" : "chunks",
                            chunks,
                            exact));
  }
}

void check_costs(const BuilderInfo& builder, const BuildRequest& request) {
  if (request.costs && !builder.takes_costs) {
    throw Error(Errc::UsageArgument,
                fmt::format("{} ignores costs; leave them out, or use zb-auto", builder.name));
  }
}

void check_graph(const BuilderInfo& builder, const BuildRequest& request) {
  if (builder.takes_graph && !request.graph) {
    throw Error(Errc::UsageArgument,
                fmt::format("{} needs a stage graph, e.g. the edges 0-2,1-2", builder.name));
  }
  if (!builder.takes_graph && request.graph && !request.graph->is_chain()) {
    throw Error(
        Errc::UsageArgument,
        fmt::format(
            "{} runs one chain of stages and takes no stage graph; use dag-1f1b or dag-gpipe",
            builder.name));
  }
  if (builder.takes_graph && request.devices != 0 && request.devices != request.graph->size()) {
    throw Error(Errc::ScheduleParameter,
                fmt::format("{} needs one device per stage, got {} for {}; nearest: {}",
                            builder.name,
                            count_text(request.devices, "device"),
                            count_text(request.graph->size(), "stage"),
                            request.graph->size()));
  }
}

/// Refuses a size that no machine can hold, before anything is allocated for it.
void check_size(const BuilderInfo& builder, const BuildRequest& request) {
  constexpr double kMaxCells = 5e7;
  double chunks = request.chunks.value_or(2);
  for (const char* name : {"waves", "loops"}) {
    chunks = std::max(chunks, 2.0 * request.number(name, 1));
  }
  const double stages = request.graph ? request.graph->size() : request.devices * chunks;
  const double rows = request.graph ? request.graph->size() : request.devices;
  // The tasks, and the ramps of the array: every row waits while the others fill and drain.
  const double cells = 3 * stages * request.microbatches + 2 * rows * stages;
  if (stages > kMaxStages || cells > kMaxCells) {
    throw Error(Errc::ScheduleParameter,
                fmt::format("{} with {} devices and {} microbatches would have over {} stages or "
                            "{:.0f} cells; use smaller numbers",
                            builder.name,
                            request.devices,
                            request.microbatches,
                            kMaxStages,
                            kMaxCells));
  }
}

}  // namespace

void check_request(const BuilderInfo& builder, const BuildRequest& request) {
  check_parameters(builder, request);
  check_chunks(builder, request);
  check_costs(builder, request);
  check_graph(builder, request);
  check_size(builder, request);
}

}  // namespace stagecraft
