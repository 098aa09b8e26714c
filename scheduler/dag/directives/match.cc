#include "stagecraft/scheduler/dag/directives/match.h"

#include <algorithm>
#include <set>
#include <tuple>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "stagecraft/base/count_text.h"

namespace stagecraft {
namespace {

bool has_pass(DagKind kind, Pass pass) {
  switch (pass) {
    case Pass::F:
      return kind == DagKind::Forward;
    case Pass::B:
      return kind == DagKind::Backward || kind == DagKind::Input || kind == DagKind::Weight;
    case Pass::BI:
      return kind == DagKind::Input;
    case Pass::BW:
      return kind == DagKind::Weight;
  }
  return false;
}

}  // namespace

DagMatcher::DagMatcher(const TrainingDag& dag) : dag_(&dag) {
  for (int n = 0; n < dag.size(); ++n) {
    if (computes(dag.node(n).kind)) {
      nodes_.push_back(n);
    }
  }
  std::ranges::sort(nodes_, {}, [&](int n) {
    const DagNode& node = dag.node(n);
    return std::tuple(node.stage, node.microbatch, n);
  });
  stage_begin_.assign(static_cast<std::size_t>(dag.source.graph.size()) + 1, 0);
  for (const int n : nodes_) {
    ++stage_begin_[dag.node(n).stage.index() + 1];
  }
  for (std::size_t s = 1; s < stage_begin_.size(); ++s) {
    stage_begin_[s] += stage_begin_[s - 1];
  }
}

bool DagMatcher::matches(const DagNode& node, const Filter& filter) const {
  if (filter.pass && !has_pass(node.kind, *filter.pass)) {
    return false;
  }
  return std::ranges::all_of(filter.tags, [&](const Filter::Tag& tag) {
    if (tag.name == kStageTag) {
      return !tag.number || node.stage.value == *tag.number;
    }
    if (tag.name == kMicrobatchTag) {
      return !tag.number || node.microbatch.value == *tag.number;
    }
    return std::ranges::any_of(dag_->chunk_of(node).regions, [&](const RegionTag& region) {
      return region.first == tag.name && (!tag.number || region.second == *tag.number);
    });
  });
}

std::vector<int> DagMatcher::match(const Filter& filter) const {
  auto begin = nodes_.begin();
  auto end = nodes_.end();
  if (const auto stage = filter.number_of(kStageTag)) {
    if (*stage < 0 || *stage >= dag_->source.graph.size()) {
      return {};
    }
    const auto s = static_cast<std::size_t>(*stage);
    end = begin + stage_begin_[s + 1];
    begin += stage_begin_[s];
    if (const auto microbatch = filter.number_of(kMicrobatchTag)) {
      const auto number = [&](int n) { return dag_->node(n).microbatch.value; };
      begin = std::ranges::lower_bound(begin, end, *microbatch, {}, number);
      end = std::ranges::upper_bound(begin, end, *microbatch, {}, number);
    }
  }
  std::vector<int> matched;
  std::copy_if(begin, end, std::back_inserter(matched), [&](int n) {
    return matches(dag_->node(n), filter);
  });
  std::ranges::sort(matched);
  return matched;
}

std::vector<int> DagMatcher::match(std::size_t directive,
                                   const Filter& filter,
                                   StrategyFaults& faults) const {
  std::vector<int> matched = match(filter);
  if (const std::string wrong = fault(filter, matched); !wrong.empty()) {
    faults.note(directive, wrong);
    return {};
  }
  return matched;
}

std::string DagMatcher::fault(const Filter& filter, const std::vector<int>& matched) const {
  const bool usual = std::ranges::all_of(filter.tags, [](const Filter::Tag& tag) {
    return tag.name == kStageTag || tag.name == kMicrobatchTag;
  });
  if (usual && !matched.empty()) {
    return {};
  }
  std::set<std::string> known{std::string(kStageTag), std::string(kMicrobatchTag)};
  for (const auto& chunks : dag_->source.chunks) {
    for (const DagChunk& chunk : chunks) {
      for (const auto& [tag, number] : chunk.regions) {
        known.insert(tag);
      }
    }
  }
  for (const Filter::Tag& tag : filter.tags) {
    if (!known.contains(tag.name)) {
      return fmt::format("{} names the tag {}, and the model has {}",
                         to_string(filter),
                         tag.name,
                         fmt::join(known, ", "));
    }
  }
  if (matched.empty()) {
    return fmt::format("{} matches nothing: there are {} and {}",
                       to_string(filter),
                       count_text(dag_->source.graph.size(), "stage"),
                       count_text(dag_->microbatches, "microbatch"));
  }
  return {};
}

}  // namespace stagecraft
