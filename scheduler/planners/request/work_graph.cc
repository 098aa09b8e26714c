#include "stagecraft/scheduler/planners/request/work_graph.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "stagecraft/base/error.h"

namespace stagecraft {
namespace {

/// The figures that joined operators add up.
constexpr double OperatorCost::*kFigures[] = {&OperatorCost::forward,
                                              &OperatorCost::backward_input,
                                              &OperatorCost::backward_weight,
                                              &OperatorCost::update,
                                              &OperatorCost::kept,
                                              &OperatorCost::waiting,
                                              &OperatorCost::gradient,
                                              &OperatorCost::output,
                                              &OperatorCost::input};

/// Per operator; results of joined operators are numbered one after the other.
constexpr int kMostOutputs = 1 << 16;

[[noreturn]] void refuse_costs(const std::string& text) {
  throw Error(Errc::UsageArgument, text);
}

/// The operators at every measured size, ascending.
using Sizes = std::map<int, const std::vector<OperatorCost>*>;

Sizes sizes_of(const Costs& costs) {
  Sizes sizes{{costs.samples, &costs.operators}};
  for (const auto& [samples, operators] : costs.operators_at) {
    if (operators.size() != costs.operators.size()) {
      refuse_costs(
          fmt::format("costs have {} operators on {} samples and {} on {}; profile them again",
                      costs.operators.size(),
                      costs.samples,
                      operators.size(),
                      samples));
    }
    sizes.emplace(samples, &operators);
  }
  return sizes;
}

/// The shares with which the figures at two sizes make those at another size.
struct Mix {
  const std::vector<OperatorCost>* first = nullptr;
  const std::vector<OperatorCost>* second = nullptr;
  double first_share = 1;
  double second_share = 0;
};

Mix mix_for(const Sizes& sizes, int samples) {
  const auto at = sizes.find(samples);
  if (at != sizes.end()) {
    return {at->second, at->second};
  }
  if (sizes.size() == 1) {
    const auto& [size, operators] = *sizes.begin();
    return {operators, operators, static_cast<double>(samples) / size, 0};
  }
  auto above = sizes.upper_bound(samples);
  above = above == sizes.begin() ? std::next(above)
          : above == sizes.end() ? std::prev(above)
                                 : above;
  const auto below = std::prev(above);
  const double share = static_cast<double>(samples - below->first) / (above->first - below->first);
  return {below->second, above->second, 1 - share, share};
}

OperatorCost mixed(const OperatorCost& first,
                   double first_share,
                   const OperatorCost& second,
                   double second_share) {
  const auto mix = [&](double OperatorCost::*figure) {
    return std::max(0.0, first.*figure * first_share + second.*figure * second_share);
  };
  OperatorCost made;
  for (double OperatorCost::*const figure : kFigures) {
    made.*figure = mix(figure);
  }
  made.transient = mix(&OperatorCost::transient);
  made.update = first.update;  // does not depend on the samples
  return made;
}

void insert_once(std::vector<int>& sorted, int value) {
  const auto at = std::ranges::lower_bound(sorted, value);
  if (at == sorted.end() || *at != value) {
    sorted.insert(at, value);
  }
}

}  // namespace

WorkGraph WorkGraph::of(const Costs& costs, int samples) {
  if (costs.operators.empty()) {
    refuse_costs("the costs have no operators; `stagecraft profile` measures them");
  }
  if (samples < 1) {
    refuse_costs(fmt::format("a microbatch needs at least one sample, found {}", samples));
  }
  WorkGraph graph;
  graph.samples_ = samples;
  graph.all_parameters_ = costs.parameters;
  const Mix mix = mix_for(sizes_of(costs), samples);
  const double scale = static_cast<double>(samples) / costs.samples;
  std::map<int, int> place;  // by id
  std::map<std::string_view, int> parameter;
  for (const ParameterCost& one : costs.parameters) {
    parameter.emplace(one.name, static_cast<int>(parameter.size()));
  }
  for (std::size_t i = 0; i < costs.operators.size(); ++i) {
    const OperatorCost& op = costs.operators[i];
    if (i > 0 && op.id <= costs.operators[i - 1].id) {
      refuse_costs(
          fmt::format("operator {} comes after {}; list operators in the order of the forward, "
                      "with ascending ids",
                      op.id,
                      costs.operators[i - 1].id));
    }
    if (i == 0 || !op.joined) {
      graph.add_operator(op.name);
    }
    const int here = graph.size() - 1;
    graph.add_figures(mixed((*mix.first)[i], mix.first_share, (*mix.second)[i], mix.second_share));
    for (const std::string& name : op.parameters) {
      const auto found = parameter.find(name);
      if (found == parameter.end()) {
        refuse_costs(
            fmt::format("operator {} uses parameter {}, which the costs do not list", op.id, name));
      }
      insert_once(graph.parameters_.back(), found->second);
    }
    for (const OperatorRead& read : op.reads) {
      const auto found = place.find(read.producer);
      if (found == place.end()) {
        refuse_costs(fmt::format("operator {} reads {}, which is not among the operators before it",
                                 op.id,
                                 read.producer));
      }
      if (found->second != here) {
        const auto& joined = graph.ids_[static_cast<std::size_t>(found->second)];
        const auto member = std::ranges::find(joined, read.producer) - joined.begin();
        const int output = static_cast<int>(member) * kMostOutputs + read.output;
        graph.add_edge({found->second, output, here, read.bytes * scale});
      }
    }
    place.emplace(op.id, here);
    graph.ids_.back().push_back(op.id);
  }
  std::ranges::stable_sort(
      graph.edges_, {}, [](const Edge& e) { return std::pair(e.consumer, e.producer); });
  graph.list_results();
  return graph;
}

void WorkGraph::add_operator(const std::string& name) {
  operators_.push_back({.id = size(), .name = name});
  ids_.emplace_back();
  parameters_.emplace_back();
  preds_.emplace_back();
  succs_.emplace_back();
}

/// Adds the figures of one more operator to the last one, to which it is joined.
void WorkGraph::add_figures(const OperatorCost& figures) {
  OperatorCost& op = operators_.back();
  op.transient = std::max(op.transient, op.kept + figures.transient);
  knows_waiting_ = knows_waiting_ || figures.waiting > 0;
  for (double OperatorCost::*const figure : kFigures) {
    op.*figure += figures.*figure;
  }
}

void WorkGraph::add_edge(const Edge& edge) {
  edges_.push_back(edge);
  insert_once(preds_[static_cast<std::size_t>(edge.consumer)], edge.producer);
  insert_once(succs_[static_cast<std::size_t>(edge.producer)], edge.consumer);
}

/// Requires: edges are in order.
void WorkGraph::list_results() {
  std::map<std::tuple<int, int, double>, std::size_t> place;  // by producer, output and bytes
  for (const Edge& edge : edges_) {
    place.try_emplace({edge.producer, edge.output, edge.bytes});
  }
  for (auto& [read, at] : place) {
    at = results_.size();
    results_.push_back({std::get<0>(read), std::get<2>(read), {}});
  }
  for (const Edge& edge : edges_) {
    Result& result = results_[place.at({edge.producer, edge.output, edge.bytes})];
    if (result.consumers.empty() || result.consumers.back() != edge.consumer) {
      result.consumers.push_back(edge.consumer);
    }
  }
}

const WorkGraph& WorkGraphs::on(int samples) {
  const auto at = made_.find(samples);
  return at != made_.end() ? at->second
                           : made_.emplace(samples, WorkGraph::of(*costs_, samples)).first->second;
}

StageOperators ids_of(const WorkGraph& graph, const StageOperators& stages) {
  StageOperators ids;
  for (const std::vector<int>& operators : stages) {
    std::vector<int>& stage = ids.emplace_back();
    for (const int op : operators) {
      stage.insert(stage.end(), graph.ids(op).begin(), graph.ids(op).end());
    }
  }
  return ids;
}

StageOperators consecutive_stages(std::span<const int> ends) {
  StageOperators stages;
  int first = 0;
  for (const int end : ends) {
    std::vector<int>& operators = stages.emplace_back(static_cast<std::size_t>(end - first));
    std::iota(operators.begin(), operators.end(), std::exchange(first, end));
  }
  return stages;
}

void add_halves(const OperatorCost& cost, StageWork& work) {
  const double alone = std::max(0.0, cost.transient - cost.kept);
  work.weight_transient = std::max(work.weight_transient, alone - work.waiting);
  work.input_transient = std::max(work.input_transient, work.gradients + alone);
  work.gradients += cost.gradient;
  work.input_transient = std::max(work.input_transient, work.gradients);
  work.waiting += cost.waiting;
}

void put_memory(const WorkGraph& graph,
                const StageWork& work,
                std::size_t stage,
                MemoryModel& memory) {
  const auto put = [&](std::vector<double> MemoryModel::*list, double bytes) {
    (memory.*list).resize(std::max((memory.*list).size(), stage + 1));
    (memory.*list)[stage] = bytes;
  };
  put(&MemoryModel::fixed, work.held);
  put(&MemoryModel::trained, work.trained);
  put(&MemoryModel::states, work.states());
  put(&MemoryModel::activations, work.kept + work.input);
  put(&MemoryModel::transient, work.transient);
  if (graph.knows_waiting()) {
    put(&MemoryModel::waiting, work.waiting + work.input);
    put(&MemoryModel::input_transient, work.input_transient);
    put(&MemoryModel::weight_transient, work.weight_transient);
  }
}

void add_received(double bytes, std::size_t stage, MemoryModel& memory) {
  memory.activations[stage] += bytes;
  if (stage < memory.waiting.size()) {
    memory.waiting[stage] += bytes;
  }
}

StageWork work_of(const WorkGraph& graph, std::span<const int> operators) {
  StageWork work;
  std::set<int> parameters;
  for (const int op : operators) {
    const OperatorCost& cost = graph.at(op);
    work.forward += cost.forward;
    work.backward_input += cost.backward_input;
    work.backward_weight += cost.backward_weight;
    work.update += cost.update;
    work.transient = std::max(work.transient, work.kept + cost.transient);
    work.kept += cost.kept;
    work.input += cost.input;
    parameters.insert(graph.parameters(op).begin(), graph.parameters(op).end());
  }
  work.transient = std::max(0.0, work.transient - work.kept);
  for (std::size_t i = operators.size(); i-- > 0;) {
    add_halves(graph.at(operators[i]), work);
  }
  for (const int p : parameters) {
    work.parameters += graph.all_parameters()[static_cast<std::size_t>(p)].bytes;
    work.held += graph.all_parameters()[static_cast<std::size_t>(p)].held;
    work.trained += graph.all_parameters()[static_cast<std::size_t>(p)].trained();
  }
  return work;
}

double all_reduce_seconds(double bytes, const Link& link, int devices) {
  return bytes > 0 && devices > 1 ? 2 * (devices - 1) * link.time_of(bytes / devices) : 0;
}

namespace {

std::vector<int> stage_of_operator(const WorkGraph& graph, const StageOperators& stages) {
  std::vector<int> stage(static_cast<std::size_t>(graph.size()), -1);
  for (std::size_t s = 0; s < stages.size(); ++s) {
    for (const int op : stages[s]) {
      stage[static_cast<std::size_t>(op)] = static_cast<int>(s);
    }
  }
  return stage;
}

}  // namespace

Durations durations_of(const StageWork& work, const CostDevice& device) {
  return {.forward = work.forward + device.task,
          .backward = work.backward() + device.task,
          .backward_input = device.split * work.backward_input + device.task,
          .backward_weight = device.split * work.backward_weight + device.task,
          .update = work.update};
}

StageGraph stage_graph_of(const WorkGraph& graph, const StageOperators& stages) {
  const std::vector<int> stage = stage_of_operator(graph, stages);
  std::set<StageGraph::Edge> edges;
  for (const WorkGraph::Edge& edge : graph.edges()) {
    const int from = stage[static_cast<std::size_t>(edge.producer)];
    const int to = stage[static_cast<std::size_t>(edge.consumer)];
    if (from != to) {
      edges.emplace(from, to);
    }
  }
  StageGraph made =
      StageGraph::from_edges(static_cast<int>(stages.size()), {edges.begin(), edges.end()});
  for (StageId s(0); s.value < made.size(); ++s.value) {
    made.set_needs_input_grad(s, !made.preds(s).empty());
  }
  std::vector<std::set<int>> users(graph.all_parameters().size());
  for (int op = 0; op < graph.size(); ++op) {
    for (const int p : graph.parameters(op)) {
      users[static_cast<std::size_t>(p)].insert(stage[static_cast<std::size_t>(op)]);
    }
  }
  for (std::size_t p = 0; p < users.size(); ++p) {
    if (users[p].size() > 1) {
      TiedParameter tied{.name = graph.all_parameters()[p].name, .stages = {}, .reduced = true};
      std::ranges::transform(
          users[p], std::back_inserter(tied.stages), [](int s) { return StageId(s); });
      made.add_tied(std::move(tied));
    }
  }
  return made;
}

Costs costs_of(const Costs& costs, const WorkGraph& graph, const StageOperators& stages) {
  Costs made;
  made.device = costs.device;
  made.devices = costs.devices;
  made.links.usual = costs.links.usual;
  made.links.each = costs.links.each;
  MemoryModel& memory = made.stages.memory;
  memory.input_release = 1 - costs.device.split_bytes;
  for (const std::vector<int>& operators : stages) {
    const StageWork work = work_of(graph, operators);
    made.stages.each.push_back(durations_of(work, costs.device));
    put_memory(graph, work, made.stages.each.size() - 1, memory);
  }
  const std::vector<int> stage = stage_of_operator(graph, stages);
  std::vector<bool> receives(stages.size(), false);  // as in stage_graph_of()
  for (const WorkGraph::Result& result : graph.results()) {
    const int from = stage[static_cast<std::size_t>(result.producer)];
    std::set<int> readers;
    for (const int consumer : result.consumers) {
      readers.insert(stage[static_cast<std::size_t>(consumer)]);
    }
    readers.erase(from);
    for (const int to : readers) {
      made.links.edge_bytes[{from, to}] += result.bytes;
      add_received(result.bytes, static_cast<std::size_t>(to), memory);
      receives[static_cast<std::size_t>(to)] = true;
    }
  }
  for (std::size_t s = 0; s < stages.size(); ++s) {
    if (!receives[s]) {  // its inputs need no gradient: W does all
      Durations& durations = made.stages.each[s];
      durations.backward_input = 0;
      durations.backward_weight = durations.backward;
    }
  }
  return made;
}

}  // namespace stagecraft
