#include "stagecraft/actors/driver/step_tensors.h"

namespace stagecraft {
namespace {

Tag tag_at(const Tag& step, EdgeId edge, Microbatch microbatch) {
  Tag tag = step;
  tag.edge = edge;
  tag.microbatch = microbatch;
  return tag;
}

}  // namespace

void send_inputs(Transport& here, const Tag& step, const StepInput& input) {
  if (!input.local.source.empty()) {
    return;  // ranks read them
  }
  for (const Feed& feed : input.plan->feeds) {
    const auto& tensors = feed.label ? input.labels : input.inputs;
    here.send(feed.to,
              tag_at(step, feed.edge, feed.microbatch),
              tensors.at(feed.microbatch.index()).at(static_cast<std::size_t>(feed.position)));
  }
}

void expect_results(Transport& here, const Tag& step, const StepInput& input) {
  for (const PlanResult& result : input.plan->results) {
    input.results->push_back(
        here.receive(result.from, tag_at(step, result.edge, result.microbatch)));
  }
}

}  // namespace stagecraft
