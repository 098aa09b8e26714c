#include "stagecraft/actors/executor/step/step_parts.h"

#include "stagecraft/actors/executor/step/loss_weight.h"
#include "stagecraft/base/error.h"
#include "stagecraft/compiler/shapes/parts.h"
#include "stagecraft/scheduler/model/stage_graph.h"
#include "stagecraft/tests/support/catch.h"

namespace stagecraft {
namespace {

std::shared_ptr<const OtherShape> shape(int number) {
  return std::make_shared<const OtherShape>(OtherShape{.number = number});
}

TEST_CASE("equal microbatches in a row are one run", "[executor][parts]") {
  Parts parts;
  parts.inputs.resize(4);
  CHECK(runs_of(parts).empty());
  CHECK((runs_of(parts, 0.5) == PartRuns{{.count = 4, .weight = 0.5}}));

  const auto larger = shape(1), smaller = shape(2);
  parts.shapes = {larger, smaller, smaller, nullptr};
  parts.weights = {1.0, 0.75, 0.75, 0.75};
  CHECK((runs_of(parts) == PartRuns{{.count = 1, .shape = 1},
                                    {.count = 2, .shape = 2, .weight = 0.75},
                                    {.count = 1, .shape = 0, .weight = 0.75}}));
  CHECK(runs_of(parts, 2.0)[1].weight == 1.5);
}

TEST_CASE("LM-1: losses count relative to the first, and repeated samples not at all",
          "[executor][parts]") {
  Parts parts;
  parts.inputs.resize(3);
  parts.labels.resize(3);
  double next = 4.0;
  const LossWeight grows = [&](const std::vector<at::Tensor>& /*labels*/) { return next *= 2.0; };
  CHECK(loss_counts(grows, parts) == std::vector{8.0, 16.0, 32.0});
  parts.weights = {1.0, 1.0, 0.0};
  CHECK(loss_counts(grows, parts) == std::vector{64.0, 128.0, 0.0});
  CHECK(relative_weights({8.0, 16.0, 4.0}, 8.0) == std::vector{1.0, 2.0, 0.5});
  CHECK(relative_weights({8.0, 8.0}, 8.0).empty());
  StageGraph sized = StageGraph::chain(2);
  CHECK_NOTHROW(check_loss_weight(grows, sized));
  sized.set_microbatch_sizes({1, 2});
  CHECK_NOTHROW(check_loss_weight({}, sized));
  CHECK_THROWS_AS(check_loss_weight(grows, sized), Error);
  parts.weights = {1.0, 2.0, 2.0};
  CHECK((runs_of(parts) == PartRuns{{.count = 1}, {.count = 2, .weight = 2.0}}));
}

TEST_CASE("each microbatch has its run's shape and weight", "[executor][parts]") {
  const PartRuns runs{{.count = 2, .shape = 1, .weight = 0.5}, {.count = 1, .shape = 3}};
  CHECK(part_of(runs, 0).shape == 1);
  CHECK(part_of(runs, 1).weight == 0.5);
  CHECK(part_of(runs, 2).shape == 3);
  CHECK((part_of({}, 7) == PartRun{}));
  CHECK(total_weight(runs, 99) == 2.0);
  CHECK(total_weight({}, 3) == 3.0);
}

TEST_CASE("PT-2: the first part of a further batch weighs by its samples", "[executor][parts]") {
  Parts further;
  further.first_samples = 3;
  CHECK(scale_of(further, 3) == 1.0);
  CHECK(scale_of(further, 4) == 0.75);
}

TEST_CASE("the runs of an update are those of its batches", "[executor][parts]") {
  PartRuns all;
  append(all, {}, 4);
  append(all, {{.count = 2, .weight = 0.5}}, 4);
  CHECK((all == PartRuns{{.count = 4}, {.count = 2, .weight = 0.5}}));
  CHECK(total_weight(all, 0) == 5.0);
}

TEST_CASE("the mean of losses is by weight", "[executor][parts]") {
  CHECK(mean_loss({1.0, 3.0}, {}) == 2.0);
  CHECK(mean_loss({1.0, 3.0, 5.0}, {{.count = 2}, {.count = 1, .weight = 2.0}}) == 3.5);
  CHECK(mean_loss({1.0, 3.0}, {{.count = 1}, {.count = 1, .weight = 0.0}}) == 1.0);
}

}  // namespace
}  // namespace stagecraft
