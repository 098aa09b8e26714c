#include "stagecraft/scheduler/builders/registry.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "stagecraft/base/error.h"
#include "stagecraft/base/nearest.h"
#include "stagecraft/scheduler/builders/bidirectional/chimera.h"
#include "stagecraft/scheduler/builders/bidirectional/dualpipe.h"
#include "stagecraft/scheduler/builders/bidirectional/dualpipev.h"
#include "stagecraft/scheduler/builders/bidirectional/hanayo.h"
#include "stagecraft/scheduler/builders/check_request.h"
#include "stagecraft/scheduler/builders/gpipe.h"
#include "stagecraft/scheduler/builders/interleaved.h"
#include "stagecraft/scheduler/builders/interleaved_zb.h"
#include "stagecraft/scheduler/builders/kfkb.h"
#include "stagecraft/scheduler/builders/looped_bfs.h"
#include "stagecraft/scheduler/builders/one_f_one_b.h"
#include "stagecraft/scheduler/builders/pfeife.h"
#include "stagecraft/scheduler/builders/zero_bubble/zb_auto.h"
#include "stagecraft/scheduler/builders/zero_bubble/zb_auto_options.h"
#include "stagecraft/scheduler/builders/zero_bubble/zb_h1.h"
#include "stagecraft/scheduler/builders/zero_bubble/zb_h2.h"
#include "stagecraft/scheduler/builders/zero_bubble/zb_v.h"

namespace stagecraft {
namespace {

const BuilderParameter kReverse{"reverse_bwd", "1: backwards newest first", "0"};

Schedule dag_kfkb(const BuildRequest& request) {
  StageGraph graph = *request.graph;
  if (std::vector<int> sizes = request.numbers("sizes"); !sizes.empty()) {
    if (sizes.size() == 1) {
      sizes.assign(static_cast<std::size_t>(graph.size()), sizes.front());
    }
    graph.set_microbatch_sizes(sizes);
  }
  const std::vector<int> k = request.numbers("k");
  return kfkb(graph, request.microbatches, k.empty() ? std::vector<int>{1} : k);
}

const std::vector<BuilderInfo>& table() {
  using R = const BuildRequest&;
  static const std::vector<BuilderInfo> kTable{
      {.name = "gpipe",
       .summary = "all forwards, then all backwards",
       .parameters = {kReverse},
       .build =
           [](R r) {
             return gpipe(r.devices, r.microbatches, {.reverse_backward = r.flag("reverse_bwd")});
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
                               {.reverse_backward = r.flag("reverse_bwd")});
           }},
      {.name = "kfkb",
       .summary = "1F1B in groups of k microbatches, to hide transfers",
       .constraint = "M divisible by k",
       .parameters = {{"k", "microbatches per group", "1"}},
       .build = [](R r) { return kfkb(r.devices, r.microbatches, r.number("k", 1)); }},
      {.name = "zb-h1",
       .summary = "split backward fills bubbles, memory as 1F1B",
       .build = [](R r) { return zb_h1(r.devices, r.microbatches); }},
      {.name = "zb-h2",
       .summary = "split backward, no bubble between a device's first and last task (M >= 2P - 1), "
                  "twice the memory",
       .build = [](R r) { return zb_h2(r.devices, r.microbatches); }},
      {.name = "zb-v",
       .summary = "split backward over two chunks in a V, no bubble between a device's first and "
                  "last task "
                  "(M >= 2P - 1), memory as 1F1B",
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
                      {"i", "time of the input half of a backward", "1"},
                      {"w", "time of the weight half", "1"},
                      {"c", "time of a transfer", "0"}},
       .build = [](R r) { return zb_auto(r.devices, r.microbatches, zb_auto_options(r)); }},
      {.name = "dualpipe",
       .summary = "two replicas in opposite directions, forwards overlap backwards",
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
       .build = [](R r) { return hanayo(r.devices, r.microbatches, r.number("waves", 1)); }},
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
             return gpipe(*r.graph, r.microbatches, {.reverse_backward = r.flag("reverse_bwd")});
           }},
      {.name = "dag-kfkb",
       .summary = "1F1B in groups on a stage graph; stages may take several microbatches as one",
       .constraint = "M divisible by size x k of every stage",
       .takes_graph = true,
       .parameters = {{"k", "microbatches per group, of all stages or each", "1"},
                      {"sizes", "microbatches that count as one, for all stages or each", "1"}},
       .build = dag_kfkb},
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
                           {.loops = r.number("loops", 1),
                            .block = r.number("block", 0),
                            .extra = r.numbers("extra")});
           }},
  };
  return kTable;
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
  check_request(builder, request);
  return builder.build(request);
}

}  // namespace stagecraft
