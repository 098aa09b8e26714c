#include "stagecraft/compiler/program/recompute_stages.h"

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <utility>

#include <ATen/core/grad_mode.h>
#include <c10/util/ThreadLocalDebugInfo.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "stagecraft/base/error.h"
#include "stagecraft/base/nearest.h"
#include "stagecraft/base/split.h"
#include "stagecraft/compiler/graph/state_paths.h"
#include "stagecraft/compiler/libtorch/memory_meter.h"
#include "stagecraft/compiler/program/compiled_program.h"
#include "stagecraft/compiler/stage/chunks.h"

namespace stagecraft {
namespace {

using Tensors = std::vector<at::Tensor>;

constexpr std::size_t kMostListed = 20;  ///< names in a message

/// Region is the operators [begin, end) of a stage.
struct Region {
  std::size_t begin = 0;
  std::size_t end = 0;
};

const std::vector<Node>& nodes_of(const StageProgram& stage) {
  return stage.chunks.front().nodes;
}

/// Returns whether the stage calls the user, who must be called once.
bool has_driver_code(const StageProgram& stage) {
  return std::ranges::any_of(nodes_of(stage), is_driver_code);
}

/// Returns a region for each scope that `key_of` finds open at nodes. The nodes of a scope are
/// consecutive.
template <class KeyOf>
std::vector<Region> scopes_of(const StageProgram& stage, KeyOf&& key_of) {
  std::vector<Region> regions;
  const Annotation* open = nullptr;
  for (std::size_t n = 0; n < nodes_of(stage).size(); ++n) {
    const auto& annotations = nodes_of(stage)[n].annotations;
    const auto found = std::ranges::find_if(annotations, key_of);
    const Annotation* now = found == annotations.end() ? nullptr : &*found;
    if (now != nullptr && open != nullptr && *now == *open) {
      regions.back().end = n + 1;
    } else if (now != nullptr) {
      regions.push_back({n, n + 1});
    }
    open = now;
  }
  return regions;
}

bool is_users_region(const Annotation& a) {
  return a.tag != kStageTag && a.tag != kLossTag;
}

/// Returns the operators from the first to the last that uses state of that path.
std::vector<Region> path_of(const StageProgram& stage, std::string_view path) {
  std::set<ValueId> state;
  for (const StageParameter& parameter : stage.parameters) {
    if (is_below(parameter.name, path)) {
      state.insert(parameter.value);
    }
  }
  for (const StageBuffer& buffer : stage.buffers) {
    if (is_below(buffer.name, path)) {
      state.insert(buffer.value);
    }
  }
  std::vector<Region> regions;
  for (std::size_t n = 0; n < nodes_of(stage).size(); ++n) {
    const std::vector<ValueId> reads = reads_of(nodes_of(stage)[n]);
    if (std::ranges::any_of(reads, [&](ValueId read) { return state.contains(read); })) {
      if (regions.empty()) {
        regions.push_back({n, n});
      }
      regions.back().end = n + 1;
    }
  }
  return regions;
}

std::vector<Region> named(const StageProgram& stage, const std::string& name) {
  if (stage.name == name) {
    return {{0, nodes_of(stage).size()}};
  }
  std::vector<Region> regions =
      scopes_of(stage, [&](const Annotation& a) { return is_users_region(a) && a.name == name; });
  const std::vector<Region> of_path = path_of(stage, name);
  regions.insert(regions.end(), of_path.begin(), of_path.end());
  return regions;
}

/// Known holds every name that the caller could give.
struct Known {
  std::vector<std::string> stages, regions, paths;
};

void add_once(std::vector<std::string>& names, std::string_view name) {
  if (std::ranges::find(names, name) == names.end()) {
    names.emplace_back(name);
  }
}

Known known_names(const Graph& graph, const Partition& partition) {
  Known known;
  for (const StageProgram& stage : partition.stages) {
    add_once(known.stages, stage.name);
    for (const Node& node : nodes_of(stage)) {
      for (const Annotation& a : node.annotations) {
        if (is_users_region(a)) {
          add_once(known.regions, a.name);
        }
      }
    }
  }
  for (const auto* state : {&graph.parameters, &graph.buffers}) {
    for (const NamedTensor& tensor : *state) {
      for (const std::string& path : paths_above(tensor.name)) {
        add_once(known.paths, path);
      }
    }
  }
  return known;
}

std::string listed(const std::vector<std::string>& names) {
  if (names.empty()) {
    return "none";
  }
  const auto shown = std::span(names).first(std::min(names.size(), kMostListed));
  const std::string rest = names.size() > kMostListed
                               ? fmt::format(" and {} more", names.size() - kMostListed)
                               : std::string();
  return fmt::format("{}{}", fmt::join(shown, ", "), rest);
}

[[noreturn]] void refuse_unknown(const std::string& name, const Known& known) {
  std::vector<std::string> all = known.stages;
  all.insert(all.end(), known.regions.begin(), known.regions.end());
  all.insert(all.end(), known.paths.begin(), known.paths.end());
  throw Error(
      Errc::UsageArgument,
      fmt::format("no part to recompute is called \"{}\": {}the stages are {}; the marked regions "
                  "{}; the paths of parameters {}",
                  name,
                  did_you_mean(name, all),
                  listed(known.stages),
                  listed(known.regions),
                  listed(known.paths)));
}

class Choice {
 public:
  Choice(const Graph& graph, const StageGraph& stage_graph, const Partition& partition)
      : graph_(graph),
        stage_graph_(stage_graph),
        partition_(partition),
        regions_(partition.stages.size()) {}

  /// Returns the regions of every stage.
  std::vector<std::vector<Region>> run(const Recompute& recompute) && {
    switch (recompute.what) {
      case Recompute::What::Nothing:
        break;
      case Recompute::What::Marked:
        take([](const StageProgram& stage) {
          return scopes_of(stage, [](const Annotation& a) { return a.tag == kRecomputeTag; });
        });
        break;
      case Recompute::What::Stages:
        take([](const StageProgram& stage) {
          return std::vector<Region>{{0, nodes_of(stage).size()}};
        });
        break;
      case Recompute::What::Named:
        take_names(recompute.names);
        break;
    }
    for (std::vector<Region>& regions : regions_) {
      join(regions);
    }
    return std::move(regions_);
  }

 private:
  enum class Found { Nothing, WithoutBackward, Something };

  template <class RegionsOf>
  Found take(RegionsOf&& regions_of) {
    Found found = Found::Nothing;
    for (const StageProgram& stage : partition_.stages) {
      for (const Region& region : regions_of(stage)) {
        if (!stage_graph_.has_backward(stage.id) || has_driver_code(stage)) {
          found = std::max(found, Found::WithoutBackward);
        } else if (region.begin < region.end) {
          found = Found::Something;
          regions_[stage.id.index()].push_back(region);
        }
      }
    }
    return found;
  }

  void take_names(const std::vector<std::string>& names) {
    if (names.empty()) {
      throw Error(Errc::UsageArgument,
                  "Recompute::named has no names; give some, or use Recompute::nothing()");
    }
    for (const std::string& name : names) {
      const Found found = take([&](const StageProgram& stage) { return named(stage, name); });
      if (found == Found::Nothing) {
        refuse_unknown(name, known_names(graph_, partition_));
      }
      if (found == Found::WithoutBackward) {
        throw Error(Errc::UsageArgument,
                    fmt::format("there is nothing to recompute in \"{}\": its stage has no "
                                "backward and keeps nothing; leave it out",
                                name));
      }
    }
  }

  static void join(std::vector<Region>& regions) {
    std::ranges::sort(regions, [](const Region& a, const Region& b) {
      return std::pair(a.begin, b.end) < std::pair(b.begin, a.end);
    });
    std::vector<Region> joined;
    for (const Region& region : regions) {
      if (!joined.empty() && region.begin < joined.back().end) {
        joined.back().end = std::max(joined.back().end, region.end);
      } else {
        joined.push_back(region);
      }
    }
    regions = std::move(joined);
  }

  const Graph& graph_;
  const StageGraph& stage_graph_;
  const Partition& partition_;
  std::vector<std::vector<Region>> regions_;  // by stage
};

void cut_out(StageProgram& stage, const std::vector<Region>& regions) {
  const std::size_t end = nodes_of(stage).size();
  std::set<std::size_t> borders;
  for (const Region& region : regions) {
    borders.insert({region.begin, region.end});
  }
  borders.erase(0);
  borders.erase(end);
  cut_into_chunks(stage, {borders.begin(), borders.end()});
  std::size_t begin = 0;
  for (Chunk& chunk : stage.chunks) {
    chunk.recompute = std::ranges::find(regions, begin, &Region::begin) != regions.end();
    begin += chunk.nodes.size();
  }
}

std::int64_t not_negative(std::int64_t bytes) {
  return std::max<std::int64_t>(0, bytes);
}

/// Runs the stage's forward as a step does, and stores the bytes that it keeps, needs and replays.
void measure(StageProgram& stage, const StageRun& run) {
  std::map<ValueId, at::Tensor> made;
  for (std::size_t i = 0; i < stage.inputs.size(); ++i) {
    made[stage.inputs[i].value] =
        run.leaves[i].detach().requires_grad_(stage.inputs[i].owes_gradient);
  }
  std::set<ValueId> kept_inputs;
  std::vector<Tensors> kept;
  const auto meter = std::make_shared<MemoryMeter>();
  const c10::DebugInfoGuard guard(c10::DebugInfoKind::PROFILER_STATE, meter);
  const at::AutoGradMode grad(true);
  for (Chunk& chunk : stage.chunks) {
    Tensors arguments;
    for (const ValueId input : chunk.inputs) {
      arguments.push_back(made.at(input).detach().requires_grad_(made.at(input).requires_grad()));
    }
    const std::int64_t before = meter->live();
    ChunkResult result = ChunkInterpreter(stage, chunk).run(arguments, run.state, kProbeKey);
    const std::int64_t with_graph = meter->live() - before;
    if (chunk.recompute) {
      for (at::Tensor& output : result.outputs) {
        output = output.detach().requires_grad_(output.requires_grad());
      }
      result.loss.reset();
      chunk.replayed_bytes = not_negative(with_graph - (meter->live() - before));
      kept_inputs.insert(chunk.inputs.begin(), chunk.inputs.end());
      kept.push_back(std::move(arguments));
    } else {
      kept.push_back(result.outputs);
      kept.back().push_back(result.loss);
    }
    for (std::size_t i = 0; i < chunk.outputs.size(); ++i) {
      made[chunk.outputs[i]] = result.outputs[i];
    }
  }
  made.clear();
  stage.transient_bytes = not_negative(meter->peak() - meter->live());
  stage.saved_bytes = not_negative(meter->live());
  for (const StageInput& input : stage.inputs) {
    stage.saved_bytes += kept_inputs.contains(input.value) ? bytes_of(stage.at(input.value)) : 0;
  }
}

}  // namespace

Recompute parse_recompute(std::string_view text) {
  if (text == "none") {
    return Recompute::nothing();
  }
  if (text == "stage") {
    return Recompute::stages();
  }
  Recompute result{.what = Recompute::What::Named, .names = {}};
  for (const std::string_view name : split(text, ',')) {
    if (name.empty()) {
      throw Error(Errc::UsageArgument,
                  fmt::format("expected none, stage, or names with commas between them, found "
                              "'{}'; leave no name empty",
                              text));
    }
    result.names.emplace_back(name);
  }
  return result;
}

void recompute_stages(const Graph& graph,
                      const StageGraph& stage_graph,
                      const Recompute& recompute,
                      Partition& partition,
                      std::vector<StageRun> runs) {
  const auto regions = Choice(graph, stage_graph, partition).run(recompute);
  for (StageRun& run : runs) {
    run.result = {};
  }
  for (StageProgram& stage : partition.stages) {
    if (!regions[stage.id.index()].empty()) {
      cut_out(stage, regions[stage.id.index()]);
      measure(stage, runs[stage.id.index()]);
    }
  }
}

}  // namespace stagecraft
