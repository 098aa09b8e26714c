#include "stagecraft/compiler/fuse/passes.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include <ATen/core/stack.h>

namespace stagecraft {
namespace {

using Values = std::set<TracedValue>;

std::size_t place_of(TracedValue value) {
  return static_cast<std::size_t>(value);
}

/// Calls an operator on whole tensors.
void run_alone(const TracedCall& call, std::vector<at::Tensor>& values) {
  torch::jit::Stack stack;
  for (const TracedOperand& operand : call.operands) {
    if (const auto* value = std::get_if<TracedValue>(&operand)) {
      stack.emplace_back(values[place_of(*value)]);
    } else if (const auto* list = std::get_if<std::vector<TracedValue>>(&operand)) {
      c10::List<at::Tensor> tensors;
      for (const TracedValue v : *list) {
        tensors.push_back(values[place_of(v)]);
      }
      stack.emplace_back(std::move(tensors));
    } else {
      stack.push_back(std::get<c10::IValue>(operand));
    }
  }
  call.op.callBoxed(&stack);
  std::size_t next = 0;
  for (const c10::IValue& result : stack) {
    if (result.isTensor()) {
      values[place_of(call.results[next++])] = result.toTensor();
    } else {
      for (const at::Tensor& tensor : result.toTensorVector()) {
        values[place_of(call.results[next++])] = tensor;
      }
    }
  }
}

}  // namespace

/// Gives each call a time: passes have even ones, what runs alone behind a pass the odd one after.
/// Views are computed by whoever reads them: in a pass, where they cost nothing, and alone.
class Passes::Builder {
 public:
  Builder(const Trace& trace,
          const std::optional<BlockDomain>& domain,
          const std::vector<TracedValue>& available)
      : trace_(trace), domain_(domain), maker_(trace.values.size(), kNobody) {
    for (std::size_t c = 0; c < trace.calls.size(); ++c) {
      for (const TracedValue result : trace.calls[c].results) {
        maker_[place_of(result)] = c;
      }
    }
    for (const TracedValue value : available) {
      maker_[place_of(value)] = kGiven;
    }
  }

  /// False where a value can be made of nothing that is there.
  bool need(const std::vector<TracedValue>& wanted) {
    std::vector<TracedValue> open = wanted;
    while (!open.empty()) {
      const std::size_t call = maker_[place_of(open.back())];
      open.pop_back();
      if (call == kNobody) {
        return false;
      }
      if (call != kGiven && needed_.insert(call).second) {
        const std::vector<TracedValue> reads = reads_of(trace_.calls[call]);
        open.insert(open.end(), reads.begin(), reads.end());
      }
    }
    return true;
  }

  std::vector<Step> steps(const std::vector<TracedValue>& wanted) {
    sort_calls(wanted);
    const std::vector<Group> groups = in_groups();
    std::vector<Step> all;
    for (const Group& group : groups) {
      if (group.pass) {
        all.push_back(
            {BlockPass(trace_, group.calls, kept_of(group, groups, wanted), *domain_), {}});
      } else {
        all.push_back({trace_.calls[group.calls.front()], {}});
      }
    }
    Values seen(wanted.begin(), wanted.end());
    for (std::size_t s = all.size(); s-- > 0;) {
      for (const TracedValue value : touched_by(groups[s])) {
        if (seen.insert(value).second) {
          all[s].last_uses.push_back(value);
        }
      }
    }
    return all;
  }

 private:
  static constexpr std::size_t kNobody = static_cast<std::size_t>(-1), kGiven = kNobody - 1;

  struct Group {
    bool pass = false;
    std::vector<std::size_t> calls;
  };

  [[nodiscard]] bool is_view(std::size_t call) const { return views_.contains(call); }

  void sort_calls(const std::vector<TracedValue>& wanted) {
    for (const std::size_t call : needed_) {
      if (domain_ && fits(trace_, trace_.calls[call], *domain_)) {
        const BlockOperator* const row = block_operator(operator_name(trace_.calls[call]));
        (row->form == BlockOperator::Form::View ? views_ : in_pass_).insert(call);
      }
    }
    const auto run_view_alone = [&](TracedValue value) {
      if (const std::size_t call = maker_[place_of(value)]; call < kGiven && is_view(call)) {
        alone_views_.insert(call);
      }
    };
    std::ranges::for_each(wanted, run_view_alone);
    for (auto call = needed_.rbegin(); call != needed_.rend(); ++call) {
      if (!in_pass_.contains(*call) && (!is_view(*call) || alone_views_.contains(*call))) {
        std::ranges::for_each(reads_of(trace_.calls[*call]), run_view_alone);
      }
    }
    for (const std::size_t call : needed_) {
      int time = 0;
      for (const TracedValue value : reads_of(trace_.calls[call])) {
        time = std::max(time, time_of(value, /*in_pass=*/in_pass_.contains(call)));
      }
      time_[call] = in_pass_.contains(call) ? time + time % 2 : is_view(call) ? time : time | 1;
    }
  }

  /// When a value is there for a pass, or for an operator alone.
  [[nodiscard]] int time_of(TracedValue value, bool in_pass) const {
    const std::size_t call = maker_[place_of(value)];
    if (call == kGiven) {
      return 0;
    }
    return is_view(call) && !in_pass ? alone_time(call) : time_.at(call);
  }

  [[nodiscard]] int alone_time(std::size_t view) const {
    int time = 0;
    for (const TracedValue value : reads_of(trace_.calls[view])) {
      time = std::max(time, time_of(value, /*in_pass=*/false));
    }
    return time | 1;
  }

  void add_views(std::size_t call, std::set<std::size_t>& calls) const {
    for (const TracedValue value : reads_of(trace_.calls[call])) {
      const std::size_t made_by = maker_[place_of(value)];
      if (made_by < kGiven && is_view(made_by)) {
        calls.insert(made_by);
        add_views(made_by, calls);
      }
    }
  }

  /// Those of one time that a pass takes, or one that runs alone.
  [[nodiscard]] std::vector<Group> in_groups() const {
    std::map<int, std::set<std::size_t>> at_time;
    for (const std::size_t call : needed_) {
      if (!is_view(call)) {
        at_time[time_.at(call)].insert(call);
      } else if (alone_views_.contains(call)) {
        at_time[alone_time(call)].insert(call);
      }
    }
    std::vector<Group> groups;
    for (auto& [time, calls] : at_time) {
      if (time % 2 == 0) {
        const std::set<std::size_t> computed = calls;
        for (const std::size_t call : computed) {
          add_views(call, calls);
        }
      }
      if (time % 2 == 0 && calls.size() > 1) {
        groups.push_back({true, {calls.begin(), calls.end()}});
      } else {
        for (const std::size_t call : calls) {
          groups.push_back({false, {call}});
        }
      }
    }
    return groups;
  }

  [[nodiscard]] Values touched_by(const Group& group) const {
    Values touched;
    for (const std::size_t call : group.calls) {
      const std::vector<TracedValue> reads = reads_of(trace_.calls[call]);
      touched.insert(reads.begin(), reads.end());
      touched.insert(trace_.calls[call].results.begin(), trace_.calls[call].results.end());
    }
    return touched;
  }

  /// What a pass makes and others read.
  [[nodiscard]] std::vector<TracedValue> kept_of(const Group& group,
                                                 const std::vector<Group>& groups,
                                                 const std::vector<TracedValue>& wanted) const {
    Values read(wanted.begin(), wanted.end());
    for (const Group& other : groups) {
      if (&other != &group) {
        read.merge(touched_by(other));
      }
    }
    std::vector<TracedValue> kept;
    for (const std::size_t call : group.calls) {
      const TracedValue result = trace_.calls[call].results.front();
      if (!is_view(call) && read.contains(result)) {
        kept.push_back(result);
      }
    }
    return kept;
  }

  const Trace& trace_;
  const std::optional<BlockDomain>& domain_;
  std::vector<std::size_t> maker_;  // the call that makes a value
  std::set<std::size_t> needed_, in_pass_, views_, alone_views_;
  std::map<std::size_t, int> time_;
};

Passes::Passes(const Trace& trace,
               const std::optional<BlockDomain>& domain,
               const std::vector<TracedValue>& available,
               const std::vector<TracedValue>& wanted) {
  Builder builder(trace, domain, available);
  complete_ = builder.need(wanted);
  if (complete_) {
    steps_ = builder.steps(wanted);
  }
}

void Passes::run(std::vector<at::Tensor>& values) const {
  for (const Step& step : steps_) {
    if (const auto* pass = std::get_if<BlockPass>(&step.work)) {
      pass->run(values);
    } else {
      run_alone(std::get<TracedCall>(step.work), values);
    }
    for (const TracedValue value : step.last_uses) {
      values[place_of(value)].reset();
    }
  }
}

PassCounts Passes::counts() const {
  PassCounts counts;
  for (const Step& step : steps_) {
    if (const auto* const pass = std::get_if<BlockPass>(&step.work)) {
      counts.fused += pass->size();
      ++counts.passes;
    } else {
      ++counts.alone;
    }
  }
  return counts;
}

std::vector<std::string> Passes::alone() const {
  std::vector<std::string> names;
  for (const Step& step : steps_) {
    if (const auto* call = std::get_if<TracedCall>(&step.work)) {
      names.push_back(operator_name(*call));
    }
  }
  return names;
}

}  // namespace stagecraft
