#include "stagecraft/scheduler/planners/graphpipe/downset_search.h"

#include <algorithm>
#include <cmath>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "stagecraft/scheduler/planners/graphpipe/problem/stage_load.h"

namespace stagecraft::graphpipe {
namespace {

/// By operator: samples in flight at consumers in later stages.
using Asked = std::vector<int>;

/// A way to the remaining operators: the stage after them, and the way before.
struct Step {
  int devices = 0;
  int most = 0;  ///< samples in flight of any stage
  double peak = 0;
  Asked asked;             ///< only if ways are compared by it
  OperatorSet left;        ///< the operators before the stage was removed
  std::size_t before = 0;  ///< number of the way of `left`
  OperatorSet stage;
  int variant = 0;
};

/// Every way of each downset, by number of operators left.
using Ways = std::vector<std::unordered_map<OperatorSet, std::vector<Step>>>;

}  // namespace

class DownsetSearch::Impl {
 public:
  Impl(const PartitionProblem& problem, long effort)
      : problem_(&problem),
        twins_(Twins::of(problem)),
        graph_(neighbors_of(problem.operators, problem.edges)),
        effort_(effort),
        readers_(at(problem.operators)),
        work_(least_work(problem)) {
    for (int op = 0; op < problem.operators; ++op) {
      everything_.set(at(op));
      for (const int consumer : graph_.succs[at(op)]) {
        readers_[at(op)].set(at(consumer));
      }
    }
    find_movable();
  }

  std::optional<Partition> find(double limit, bool least_in_flight) {
    limit_ = limit;
    if (!least_in_flight) {
      // Without regard to memory there is less to compare, and often the answer fits all the same.
      auto found = fewest_devices();
      if (!found || found->peak <= problem_->memory) {
        return found;
      }
    }
    return compared_by_in_flight();
  }

 private:
  /// Finds operators whose producers send for no longer than the operator takes and sends itself:
  /// their stage gets no slower if a later stage takes them.
  void find_movable() {
    std::vector<std::vector<double>> received(problem_->variants.size(),
                                              std::vector<double>(at(problem_->operators)));
    for (std::size_t v = 0; v < received.size(); ++v) {
      for (const auto& [from, to] : problem_->edges) {
        received[v][at(to)] += problem_->variants[v].send_of(from);
      }
    }
    for (int op = 0; op < problem_->operators; ++op) {
      bool movable = true;
      for (std::size_t v = 0; v < received.size(); ++v) {
        const Variant& variant = problem_->variants[v];
        movable = movable && received[v][at(op)] <= variant.time[at(op)] + variant.send_of(op);
      }
      movable_[at(op)] = movable;
    }
  }

  /// Returns whether the stage could take another operator from the earlier stages without slowing
  /// them down. A stage that can is no better than the same stage with that operator.
  [[nodiscard]] bool takes_more(const OperatorSet& left,
                                const OperatorSet& stage,
                                const StageLoad& load,
                                int v) const {
    const Variant& variant = problem_->variants[at(v)];
    const double room = limit_ - load.time(v);
    const OperatorSet candidates = left & ~stage & movable_;
    for (std::size_t op = candidates._Find_first(); op < candidates.size();
         op = candidates._Find_next(op)) {
      const double most = variant.time[op] + variant.send_of(static_cast<int>(op));
      if (most <= room && (readers_[op] & left & ~stage).none()) {
        return true;
      }
    }
    return false;
  }

  std::optional<Partition> fewest_devices() {
    compare_ = false;
    return search();
  }

  std::optional<Partition> compared_by_in_flight() {
    compare_ = true;
    const long before = effort_;
    effort_ = std::min(effort_, kMostCompared);
    auto found = search();
    const bool spent = effort_ <= 0;
    effort_ = before;
    if (spent) {
      // With unlimited memory, the stages without the comparison are as fast.
      return std::isinf(problem_->memory) ? fewest_devices() : std::nullopt;
    }
    return found;
  }

  std::optional<Partition> search() {
    ways_.assign(at(problem_->operators + 1), {});
    Step first;
    first.asked.assign(compare_ ? at(problem_->operators) : 0, 0);
    ways_.back()[everything_].push_back(first);
    for (std::size_t size = ways_.size(); size-- > 1 && effort_ > 0;) {
      for (const auto& [left, ways] : ways_[size]) {
        take_last_stages(left, ways);
      }
    }
    return effort_ <= 0 || ways_.front().empty() ? std::nullopt : std::optional(answer());
  }

  void take_last_stages(const OperatorSet& left, const std::vector<Step>& ways) {
    StageLoad load(*problem_, graph_);
    equal_.assign(at(problem_->operators), 0);
    remaining_ = 0;
    for (int op = 0; op < problem_->operators; ++op) {
      remaining_ += left[at(op)] ? work_[at(op)] : 0;
      equal_[at(op)] =
          static_cast<char>(!compare_ && twins_.before(op) >= 0 && twins_.equal_before(op, left));
    }
    OperatorSet stage;
    grow(left, ways, 0, load, stage);
  }

  /// Tries every stage that extends `stage` by operators of the order from `next` on.
  void grow(const OperatorSet& left,
            const std::vector<Step>& ways,
            std::size_t next,
            StageLoad& load,
            OperatorSet& stage) {
    for (; next < twins_.order().size() && effort_ > 0; ++next) {
      const int op = twins_.order()[next];
      if (!left[at(op)] || (readers_[at(op)] & left & ~stage).any() ||
          (equal_[at(op)] != 0 && !stage[at(twins_.before(op))])) {
        continue;
      }
      load.add(op);
      if (load.within(limit_)) {
        stage.set(at(op));
        remaining_ -= work_[at(op)];
        --effort_;
        take(left, ways, load, stage);
        grow(left, ways, next + 1, load, stage);
        remaining_ += work_[at(op)];
        stage.reset(at(op));
      }
      load.shrink(load.size() - 1);
    }
  }

  void take(const OperatorSet& left,
            const std::vector<Step>& ways,
            const StageLoad& load,
            const OperatorSet& stage) {
    const OperatorSet rest = left & ~stage;
    const OperatorSet key = compare_ ? rest : twins_.sorted(rest);
    const double later = std::ceil(remaining_ / limit_ - 1e-9);
    std::vector<Step>* known = nullptr;
    for (std::size_t w = 0; w < ways.size(); ++w) {
      for (int v = 0; v < static_cast<int>(problem_->variants.size()); ++v) {
        const Variant& variant = problem_->variants[at(v)];
        Step made{.devices = ways[w].devices + variant.devices};
        if (load.time(v) > limit_ || made.devices + later > problem_->devices) {
          continue;
        }
        if (!compare_ && takes_more(left, stage, load, v)) {
          break;
        }
        if (compare_ && !fill(made, ways[w], load, stage, v)) {
          continue;
        }
        known = known == nullptr ? &ways_[rest.count()][key] : known;
        made.left = left;
        made.before = w;
        made.stage = stage;
        made.variant = v;
        keep(*known, std::move(made), rest);
        if (!compare_) {
          break;
        }
      }
    }
  }

  /// Sets the samples in flight of the stage. Returns false if it does not fit the memory.
  bool fill(Step& made, const Step& way, const StageLoad& load, const OperatorSet& stage, int v) {
    const StagePace turns = problem_->variants[at(v)].turns;
    int asked = 0;
    for (const int op : load.operators()) {
      asked = std::max(asked, way.asked[at(op)]);
    }
    const int in_flight =
        asked == 0 ? sink_in_flight(turns) : compute_in_flight(turns, turns, asked);
    const double bytes = load.bytes(v, in_flight);
    if (bytes > problem_->memory) {
      return false;
    }
    --effort_;
    made.most = std::max(way.most, in_flight);
    made.peak = std::max(way.peak, bytes);
    made.asked = way.asked;
    for (int op = 0; op < problem_->operators; ++op) {
      if (!stage[at(op)] && (readers_[at(op)] & stage).any()) {
        made.asked[at(op)] = std::max(made.asked[at(op)], in_flight);
      }
    }
    return true;
  }

  void keep(std::vector<Step>& known, Step made, const OperatorSet& rest) const {
    if (std::ranges::any_of(known, [&](const Step& k) { return covers(k, made, rest); })) {
      return;
    }
    std::erase_if(known, [&](const Step& k) { return covers(made, k, rest); });
    known.push_back(std::move(made));
  }

  [[nodiscard]] bool covers(const Step& a, const Step& b, const OperatorSet& rest) const {
    if (a.devices > b.devices) {
      return false;
    }
    if (!compare_) {
      return true;
    }
    if (a.most > b.most || (a.most == b.most && a.peak > b.peak)) {
      return false;
    }
    for (std::size_t op = 0; op < a.asked.size(); ++op) {
      if (rest[op] && a.asked[op] > b.asked[op]) {
        return false;
      }
    }
    return true;
  }

  Partition answer() const {
    const std::vector<Step>& last = ways_.front().begin()->second;
    const Step* step = &*std::ranges::min_element(
        last, {}, [](const Step& s) { return std::tuple(s.most, s.peak, s.devices); });
    std::vector<const Step*> steps;
    while (step->stage.any()) {
      steps.push_back(step);
      step = &ways_[step->left.count()].at(step->left)[step->before];
    }
    // Go from the last stage on, and undo the exchanges of twins_.
    std::vector<int> real(at(problem_->operators));
    for (int op = 0; op < problem_->operators; ++op) {
      real[at(op)] = op;
    }
    std::vector<PartitionStage> stages;
    for (auto taken = steps.rbegin(); taken != steps.rend(); ++taken) {
      PartitionStage stage{{}, (*taken)->variant, 0};
      for (int op = 0; op < problem_->operators; ++op) {
        if ((*taken)->stage[at(op)]) {
          stage.operators.push_back(real[at(op)]);
        }
      }
      stages.push_back(std::move(stage));
      if (!compare_) {
        std::vector<int> places = twins_.places((*taken)->left & ~(*taken)->stage);
        std::ranges::transform(places, places.begin(), [&](int op) { return real[at(op)]; });
        real = std::move(places);
      }
    }
    return settle(*problem_, std::move(stages));
  }

  static constexpr long kMostCompared = 300'000;

  const PartitionProblem* problem_;
  Twins twins_;
  Neighbors graph_;
  long effort_;  // number of stages that may still be tried
  bool compare_ = false;
  double limit_ = 0;
  OperatorSet everything_;
  std::vector<OperatorSet> readers_;
  OperatorSet movable_;
  std::vector<double> work_;  // by operator: seconds times devices
  std::vector<char> equal_;
  double remaining_ = 0;
  Ways ways_;
};

DownsetSearch::DownsetSearch(const PartitionProblem& problem, long effort)
    : impl_(std::make_unique<Impl>(problem, effort)) {}

DownsetSearch::~DownsetSearch() = default;

std::optional<Partition> DownsetSearch::find(double limit, bool least_in_flight) {
  return impl_->find(limit, least_in_flight);
}

}  // namespace stagecraft::graphpipe
