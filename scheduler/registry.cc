#include "stagecraft/scheduler/registry.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "stagecraft/base/error.h"
#include "stagecraft/base/nearest.h"
#include "stagecraft/scheduler/builders/chimera.h"
#include "stagecraft/scheduler/builders/dualpipe.h"
#include "stagecraft/scheduler/builders/dualpipev.h"
#include "stagecraft/scheduler/builders/gpipe.h"
#include "stagecraft/scheduler/builders/hanayo.h"
#include "stagecraft/scheduler/builders/interleaved.h"
#include "stagecraft/scheduler/builders/interleaved_zb.h"
#include "stagecraft/scheduler/builders/kfkb.h"
#include "stagecraft/scheduler/builders/looped_bfs.h"
#include "stagecraft/scheduler/builders/one_f_one_b.h"
#include "stagecraft/scheduler/builders/pfeife.h"
#include "stagecraft/scheduler/builders/zb_auto.h"
#include "stagecraft/scheduler/builders/zb_h1.h"
#include "stagecraft/scheduler/builders/zb_h2.h"
#include "stagecraft/scheduler/builders/zb_v.h"

namespace stagecraft {
namespace {

int to_number(std::string_view name, std::string_view text) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) {
    throw Error(Errc::UsageArgument,
                fmt::format("parameter {} wants a whole number, got '{}'", name, text));
  }
  return value;
}

int number(const BuildRequest& request, const std::string& name, int fallback) {
  const auto found = request.set.find(name);
  return found == request.set.end() ? fallback : to_number(name, found->second);
}

std::vector<int> numbers(const BuildRequest& request, const std::string& name) {
  std::vector<int> list;
  const auto found = request.set.find(name);
  std::string_view rest = found == request.set.end() ? std::string_view{} : found->second;
  while (!rest.empty()) {
    const std::size_t comma = rest.find(',');
    list.push_back(to_number(name, rest.substr(0, comma)));
    rest = comma == std::string_view::npos ? std::string_view{} : rest.substr(comma + 1);
  }
  return list;
}

/// One time, or one per stage: "1.5", "1,1,2,1".
std::vector<double> times(const BuildRequest& request, const std::string& name) {
  std::vector<double> list;
  const auto found = request.set.find(name);
  std::string_view rest = found == request.set.end() ? std::string_view{} : found->second;
  while (!rest.empty()) {
    const std::size_t comma = rest.find(',');
    const std::string_view word = rest.substr(0, comma);
    double value = -1;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
    if (error != std::errc() || end != word.data() + word.size() || !(value >= 0) ||
        !std::isfinite(value)) {
      throw Error(Errc::UsageArgument,
                  fmt::format("parameter {} wants a number of at least 0, got '{}'", name, word));
    }
    list.push_back(value);
    rest = comma == std::string_view::npos ? std::string_view{} : rest.substr(comma + 1);
  }
  return list;
}

/// Sets a duration of every stage, or of each.
void set_times(const BuildRequest& request,
               const std::string& name,
               double Durations::*duration,
               StageCosts& costs) {
  const std::vector<double> given = times(request, name);
  if (given.empty()) {
    return;
  }
  if (given.size() != 1 && std::ssize(given) != request.devices) {
    throw Error(Errc::ScheduleParameter,
                fmt::format("parameter {} wants one time, or one for each of {} devices, got {}",
                            name,
                            request.devices,
                            given.size()));
  }
  costs.each.resize(static_cast<std::size_t>(request.devices), costs.usual);
  for (std::size_t s = 0; s < costs.each.size(); ++s) {
    costs.each[s].*duration = given.size() == 1 ? given.front() : given[s];
  }
}

Schedule build_zb_auto(const BuildRequest& request) {
  ZbAutoOptions options{.costs = request.costs.value_or(Costs{}), .cap = numbers(request, "cap")};
  if (request.devices > 0) {
    set_times(request, "f", &Durations::forward, options.costs.stages);
    set_times(request, "i", &Durations::backward_input, options.costs.stages);
    set_times(request, "w", &Durations::backward_weight, options.costs.stages);
  }
  const std::vector<double> transfer = times(request, "c");
  if (transfer.size() > 1) {
    throw Error(Errc::UsageArgument, "parameter c wants one time, of every transfer");
  }
  if (!transfer.empty()) {
    options.costs.links.usual = {.latency = transfer.front()};
    options.costs.links.each.clear();
  }
  return zb_auto(request.devices, request.microbatches, options);
}

bool flag(const BuildRequest& request, const std::string& name) {
  const int value = number(request, name, 0);
  if (value != 0 && value != 1) {
    throw Error(Errc::UsageArgument, fmt::format("parameter {} wants 0 or 1, got {}", name, value));
  }
  return value == 1;
}

const BuilderParameter kReverse{"reverse_bwd", "1: backwards newest first", "0"};

const std::vector<BuilderInfo>& table() {
  using R = const BuildRequest&;
  static const std::vector<BuilderInfo> kTable{
      {.name = "gpipe",
       .summary = "all forwards, then all backwards",
       .parameters = {kReverse},
       .build =
           [](R r) {
             return gpipe(r.devices, r.microbatches, {.reverse_backward = flag(r, "reverse_bwd")});
           }},
      {.name = "1f1b",
       .summary = "one forward, one backward: few activations in flight",
       .build = [](R r) { return one_f_one_b(r.devices, r.microbatches); }},
      {.name = "interleaved",
       .summary = "1F1B over several chunks per device in a loop",
       .constraint = "M divisible by max(1, M / P)",
       .chunks = ChunkRule::Open,
       .build = [](R r) { return interleaved(r.devices, r.microbatches, r.chunks.value_or(2)); }},
      {.name = "looped-bfs",
       .summary = "chunks in a loop, each taking all microbatches before the next",
       .chunks = ChunkRule::Open,
       .parameters = {kReverse},
       .build =
           [](R r) {
             return looped_bfs(r.devices,
                               r.microbatches,
                               r.chunks.value_or(2),
                               {.reverse_backward = flag(r, "reverse_bwd")});
           }},
      {.name = "kfkb",
       .summary = "1F1B in groups of k microbatches, to hide transfers",
       .constraint = "M divisible by k",
       .parameters = {{"k", "microbatches per group", "1"}},
       .build = [](R r) { return kfkb(r.devices, r.microbatches, number(r, "k", 1)); }},
      {.name = "zb-h1",
       .summary = "split backward fills bubbles, memory as 1F1B",
       .build = [](R r) { return zb_h1(r.devices, r.microbatches); }},
      {.name = "zb-h2",
       .summary = "split backward, no bubble between a device's first and last task (M >= 2P - 1), "
                  "twice the memory",
       .build = [](R r) { return zb_h2(r.devices, r.microbatches); }},
      {.name = "zb-v",
       .summary = "split backward over two chunks in a V, no bubbles (M >= 2P - 1), memory as 1F1B",
       .chunks = ChunkRule::Two,
       .build = [](R r) { return zb_v(r.devices, r.microbatches); }},
      {.name = "interleaved-zb",
       .summary = "interleaved with split backward",
       .constraint = "M divisible by max(1, M / P)",
       .chunks = ChunkRule::Open,
       .build =
           [](R r) { return interleaved_zb(r.devices, r.microbatches, r.chunks.value_or(2)); }},
      {.name = "zb-auto",
       .summary = "split backward, arranged for given times and memory",
       .constraint = "cap >= 1",
       .takes_costs = true,
       .parameters = {{"cap", "most activations in flight, for all devices or each", "P"},
                      {"f", "time of a forward, of all stages or each", "1"},
                      {"i", "of the input half of a backward", "1"},
                      {"w", "of its weight half", "1"},
                      {"c", "of a transfer", "0"}},
       .build = build_zb_auto},
      {.name = "dualpipe",
       .summary = "two replicas run against each other, forwards overlap backwards",
       .constraint = "P even, M even, M >= 2P",
       .build = [](R r) { return dualpipe(r.devices, r.microbatches); }},
      {.name = "dualpipev",
       .summary = "DualPipe folded into a V: one copy of the weights",
       .constraint = "M >= 2P",
       .chunks = ChunkRule::Two,
       .build = [](R r) { return dualpipev(r.devices, r.microbatches); }},
      {.name = "chimera",
       .summary = "two replicas in opposite directions",
       .constraint = "P even, M divisible by P",
       .build = [](R r) { return chimera(r.devices, r.microbatches); }},
      {.name = "hanayo",
       .summary = "waves down and up the devices",
       .constraint = "M divisible by P",
       .chunks = ChunkRule::ByParameter,
       .parameters = {{"waves", "turns of the wave; two chunks each", "1"}},
       .build = [](R r) { return hanayo(r.devices, r.microbatches, number(r, "waves", 1)); }},
      {.name = "dag-1f1b",
       .summary = "1F1B on a stage graph, one device per stage",
       .takes_graph = true,
       .build = [](R r) { return one_f_one_b(*r.graph, r.microbatches); }},
      {.name = "dag-gpipe",
       .summary = "all forwards, then all backwards, on a stage graph",
       .takes_graph = true,
       .parameters = {kReverse},
       .build =
           [](R r) {
             return gpipe(*r.graph, r.microbatches, {.reverse_backward = flag(r, "reverse_bwd")});
           }},
      {.name = "pfeife",
       .summary = "loops, blocks and extra forwards: the family from GPipe to BFS",
       .constraint = "block divides M; warm-ups do not grow from device to device",
       .chunks = ChunkRule::ByParameter,
       .parameters = {{"loops", "chunks per device", "1"},
                      {"block", "microbatches that pass all chunks before the next block", "M"},
                      {"extra",
                       "further forwards before the first backward, by device, e.g. 2,2,1,0",
                       "none"}},
       .build =
           [](R r) {
             return pfeife(r.devices,
                           r.microbatches,
                           {.loops = number(r, "loops", 1),
                            .block = number(r, "block", 0),
                            .extra = numbers(r, "extra")});
           }},
  };
  return kTable;
}

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
    throw Error(
        Errc::UsageArgument,
        fmt::format("{} does not look at costs; leave them out, or use zb-auto", builder.name));
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
    throw Error(
        Errc::ScheduleParameter,
        fmt::format("{} needs one device per stage, got {} devices for {} stages; nearest: {}",
                    builder.name,
                    request.devices,
                    request.graph->size(),
                    request.graph->size()));
  }
}

/// Refuses what no machine could hold before anything is allocated for it.
void check_size(const BuilderInfo& builder, const BuildRequest& request) {
  constexpr double kMaxCells = 5e7;
  double chunks = request.chunks.value_or(2);
  for (const char* name : {"waves", "loops"}) {
    chunks = std::max(chunks, 2.0 * number(request, name, 1));
  }
  const double stages = request.graph ? request.graph->size() : request.devices * chunks;
  const double rows = request.graph ? request.graph->size() : request.devices;
  // Tasks, and the ramps of the array: every row waits while the others fill and drain.
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

std::span<const BuilderInfo> builders() {
  return table();
}

const BuilderInfo& find_builder(std::string_view name) {
  const auto found = std::ranges::find(table(), name, &BuilderInfo::name);
  if (found != table().end()) {
    return *found;
  }
  std::vector<std::string> names;
  for (const BuilderInfo& b : table()) {
    names.emplace_back(b.name);
  }
  throw Error(Errc::UsageArgument,
              fmt::format("no schedule is called '{}'; {}there are {}",
                          name.substr(0, 40),
                          did_you_mean(name, names),
                          fmt::join(names, ", ")));
}

Schedule build_schedule(std::string_view name, const BuildRequest& request) {
  const BuilderInfo& builder = find_builder(name);
  check_parameters(builder, request);
  check_chunks(builder, request);
  check_costs(builder, request);
  check_graph(builder, request);
  check_size(builder, request);
  return builder.build(request);
}

}  // namespace stagecraft
