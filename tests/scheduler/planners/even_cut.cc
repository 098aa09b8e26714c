#include "stagecraft/tests/scheduler/planners/even_cut.h"

#include <algorithm>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "stagecraft/base/byte_count.h"
#include "stagecraft/base/error.h"
#include "stagecraft/scheduler/builders/one_f_one_b.h"
#include "stagecraft/scheduler/planners/judge.h"

namespace stagecraft::test {
namespace {

std::optional<std::string> even_cut_refuses(const PlanRequest& request) {
  if (request.schedule || !takes_builder(request, "1f1b")) {
    return "even-cut runs 1f1b only; pfeife cuts for any schedule";
  }
  const std::size_t operators = request.costs.operators.size();
  if (operators < static_cast<std::size_t>(std::max(0, request.devices))) {
    return fmt::format("even-cut gives every device an operator, found {} for {} devices",
                       operators,
                       request.devices);
  }
  return std::nullopt;
}

Candidate candidate_of(const PlanRequest& request, int samples) {
  Candidate candidate{.planner = "even-cut",
                      .microbatch_size = samples,
                      .schedule = one_f_one_b(request.devices, request.batch / samples),
                      .schedule_name = "1f1b"};
  candidate.stages.resize(static_cast<std::size_t>(request.devices));
  const std::size_t operators = request.costs.operators.size();
  for (std::size_t op = 0; op < operators; ++op) {
    const std::size_t stage = op * candidate.stages.size() / operators;
    candidate.stages[stage].push_back(static_cast<int>(op));
  }
  return candidate;
}

std::vector<Candidate> even_cut_candidates(const PlanRequest& request) {
  std::vector<std::pair<double, Candidate>> found;  // by the time of a step
  double least = std::numeric_limits<double>::infinity();
  for (const int samples : request.sizes()) {
    Candidate candidate = candidate_of(request, samples);
    const PlanProposal judged = judge(request, candidate);
    if (judged.most_bytes() <= request.memory) {
      found.emplace_back(judged.step, std::move(candidate));
    }
    least = std::min(least, judged.most_bytes());
  }
  if (found.empty()) {
    throw Error(Errc::PlanInfeasible,
                fmt::format("the fullest device of an even cut holds {}, {} more than "
                            "there are; use more devices or smaller microbatches",
                            bytes_text(least),
                            enough_bytes_text(least - request.memory)));
  }
  std::ranges::stable_sort(found, {}, [](const auto& entry) { return entry.first; });
  std::vector<Candidate> candidates;
  for (auto& [step, candidate] : found) {
    candidates.push_back(std::move(candidate));
  }
  return candidates;
}

}  // namespace

PlannerInfo even_cut() {
  return {"even-cut",
          "the same number of operators for every device",
          even_cut_refuses,
          even_cut_candidates};
}

}  // namespace stagecraft::test
