/// Makes requests and candidates that tests of planners share.
#pragma once

#include <numeric>
#include <string>
#include <vector>

#include "stagecraft/scheduler/builders/one_f_one_b.h"
#include "stagecraft/scheduler/planners/request/planner.h"

namespace stagecraft::test {

/// Returns a request for a chain of operators with these forward times on two devices. A backward
/// takes twice as long, an update 1. Each operator keeps 10 bytes, has parameters of 10 (40 with
/// optimizer) and passes on 8.
inline PlanRequest chain_request(const std::vector<double>& times, int samples = 1) {
  PlanRequest request;
  request.costs.samples = samples;
  for (std::size_t i = 0; i < times.size(); ++i) {
    const std::string name = std::to_string(i);
    OperatorCost op{.id = static_cast<int>(i),
                    .name = name,
                    .forward = times[i],
                    .backward_input = times[i],
                    .backward_weight = times[i],
                    .update = 1,
                    .kept = 10,
                    .parameters = {name}};
    if (i == 0) {
      op.input = 8;
    } else {
      op.reads = {{static_cast<int>(i) - 1, 0, 8}};
    }
    request.costs.operators.push_back(op);
    request.costs.parameters.push_back({name, 10, 40});
  }
  request.devices = 2;
  request.batch = 4 * samples;
  return request;
}

/// Returns a candidate with the first of four operators in one stage and the rest in the other, run
/// by 1F1B.
inline Candidate two_stages(int first, int microbatches, int samples = 1) {
  Candidate candidate{.planner = "test", .stages = {{}, {}}, .microbatch_size = samples};
  for (int op = 0; op < 4; ++op) {
    candidate.stages[op < first ? 0 : 1].push_back(op);
  }
  candidate.schedule = one_f_one_b(2, microbatches);
  candidate.schedule_name = "1f1b";
  return candidate;
}

}  // namespace stagecraft::test
