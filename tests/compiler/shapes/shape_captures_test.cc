/// Tests the captures of a program for microbatches of another shape or memory order.
#include "stagecraft/compiler/shapes/shape_captures.h"

#include <torch/torch.h>

#include "stagecraft/compiler/program/compiled_program.h"
#include "stagecraft/compiler/shapes/parts.h"
#include "stagecraft/tests/compiler/shapes/two_layers.h"
#include "stagecraft/tests/support/catch.h"

namespace stagecraft {
namespace {

using testing::rows_of_four;
using testing::two_layers;
using testing::TwoLayers;

TEST_CASE("rows that lie in memory in another order are captured once more", "[compiler][batch]") {
  TwoLayers chain;
  chain.marked = true;
  const Program program = two_layers(chain, 16, 4);
  const torch::Tensor across = rows_of_four(16).t().contiguous().t();
  const Parts parts = parts_of(program, {across}, {rows_of_four(32)});
  CHECK(program.shape_captures()->count() == 2);
  REQUIRE(parts.shapes.size() == 4);
  const OtherShape& capture = *parts.shapes[0];
  CHECK(capture.random == 0);  // the sizes are the compiled ones
  const StageInput& input = capture.stages[0].inputs[0];
  CHECK(capture.stages[0].at(input.value).order == MemoryOrder{1, 0});
  CHECK(parts.weights.empty());
  CHECK(parts.inputs[0][0].stride(0) == 1);
  (void)parts_of(program, {across}, {rows_of_four(32)});
  (void)parts_of(program, {rows_of_four(16)}, {rows_of_four(32)});
  CHECK(program.shape_captures()->count() == 2);
}

TEST_CASE("a capture for another shape is cut as the program was", "[compiler][batch]") {
  TwoLayers chain;
  chain.marked = GENERATE(false, true);
  const Program program = two_layers(chain, 8, 2, chain.marked ? Cut() : Cut(At{"b"}));
  REQUIRE(program.stage_graph().size() == 2);
  for (const int count : {12, 4}) {  // with 4 rows, microbatches take another sequence of operators
    CAPTURE(chain.marked, count);
    const Parts parts = parts_of(program, {rows_of_four(count)}, {rows_of_four(2 * count)});
    const OtherShape& capture = *parts.shapes.at(0);
    CHECK(parts.weights.empty());
    REQUIRE(capture.stages.size() == 2);
    for (std::size_t s = 0; s < 2; ++s) {
      const StageProgram& before = program.compiled().partition.stages[s];
      CHECK(misfit(before, capture.stages[s]).empty());
      CHECK(capture.stages[s].name == before.name);
      CHECK(capture.stages[s].operator_count() ==
            before.operator_count() + (count == 4 && s == 0 ? 1 : 0));
    }
  }
}

}  // namespace
}  // namespace stagecraft
