#include "stagecraft/scheduler/planners/graphpipe/problem/stage_load.h"

#include <algorithm>

namespace stagecraft::graphpipe {

StageLoad::StageLoad(const PartitionProblem& problem, const Neighbors& graph)
    : problem_(&problem),
      graph_(&graph),
      width_(2 * problem.variants.size() + 1),
      in_(at(problem.operators)),
      sums_(width_) {}

void StageLoad::add(int op) {
  const std::size_t place = at(op);
  const bool sends = std::ranges::any_of(graph_->succs[place],
                                         [&](int consumer) { return in_[at(consumer)] == 0; });
  const std::size_t variants = problem_->variants.size();
  const std::size_t before = sums_.size() - width_;
  sums_.resize(sums_.size() + width_);
  double* const now = sums_.data() + before + width_;
  std::copy_n(sums_.data() + before, width_, now);
  for (std::size_t v = 0; v < variants; ++v) {
    const Variant& variant = problem_->variants[v];
    now[v] += variant.time[place] + (sends ? variant.send_of(op) : 0);
    now[variants + v] += variant.kept.empty() ? 0 : variant.kept[place];
  }
  now[width_ - 1] += problem_->fixed.empty() ? 0 : problem_->fixed[place];
  in_[place] = 1;
  operators_.push_back(op);
}

void StageLoad::shrink(std::size_t size) {
  for (; operators_.size() > size; operators_.pop_back()) {
    in_[at(operators_.back())] = 0;
  }
  sums_.resize((size + 1) * width_);
}

bool StageLoad::within(double limit) const {
  return std::ranges::any_of(sums().first(problem_->variants.size()),
                             [&](double time) { return time <= limit; });
}

}  // namespace stagecraft::graphpipe
