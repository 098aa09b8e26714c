/// Tests which regions can run samples of microbatches of other shapes.
#include "stagecraft/compiler/stage/unlike_regions.h"

#include <string>

#include "stagecraft/compiler/program/compiled_program.h"
#include "stagecraft/scheduler/builders/gpipe.h"
#include "stagecraft/tests/compiler/plan/expert_plans.h"
#include "stagecraft/tests/support/catch.h"

namespace stagecraft {
namespace {

using Catch::Matchers::ContainsSubstring;
using testing::ExpertChain;
using torch::Tensor;

/// Returns the stage of a model with experts, captured for microbatches of so many rows.
StageProgram captured_for(std::int64_t rows, const ExpertChain::Body& body) {
  torch::manual_seed(3);
  ExpertChain module(1, body);
  const Tensor x = torch::randn({2 * rows, ExpertChain::kWidth});
  const Program program = compile(
      module, {.inputs = {x}, .labels = {x}, .loss = testing::mean_square, .microbatches = 2});
  return testing::divided_plan(program, gpipe(1, 1)).program.compiled().partition.stages.front();
}

std::string difference_of(const ExpertChain::Body& body) {
  return unlike_regions(captured_for(3, body), captured_for(4, body));
}

TEST_CASE("regions that take sizes from their operands run samples of any shape",
          "[compiler][experts][shapes]") {
  CHECK(difference_of(nullptr).empty());
  CHECK(difference_of([](ExpertChain& m, std::size_t s, const Tensor& in) {
          const Tensor made = torch::einsum("ecd,edf->ecf", {in, m.weights[s]});
          return torch::layer_norm(made * 0.5 + in, {ExpertChain::kWidth}).reshape_as(in);
        }).empty());
}

TEST_CASE("a region that computes something else for another number of samples is told",
          "[compiler][experts][shapes][bad-input]") {
  CHECK_THAT(difference_of([](ExpertChain& m, std::size_t s, const Tensor& in) {
               return torch::bmm(in, m.weights[s]) / static_cast<double>(in.size(1));
             }),
             ContainsSubstring("calls aten::div") && ContainsSubstring("with other numbers"));
  CHECK_THAT(difference_of([](ExpertChain& m, std::size_t s, const Tensor& in) {
               const Tensor made = torch::bmm(in, m.weights[s]);
               return in.size(1) == 3 ? torch::tanh(made) : torch::relu(made);
             }),
             ContainsSubstring("calls aten::tanh where it calls aten::relu"));
  CHECK_THAT(difference_of([](ExpertChain& m, std::size_t s, const Tensor& in) {
               const Tensor made = torch::bmm(in, m.weights[s]);
               return in.size(1) == 3 ? made : torch::tanh(made);
             }),
             ContainsSubstring("1 and 2 operators"));
  CHECK_THAT(difference_of([](ExpertChain& m, std::size_t s, const Tensor& in) {
               const Tensor made = torch::bmm(in, m.weights[s]);
               return made * torch::full({1}, static_cast<double>(in.size(1)));
             }),
             ContainsSubstring("calls aten::mul.Tensor with other numbers or values"));
  CHECK_THAT(difference_of([](ExpertChain& m, std::size_t s, const Tensor& in) {
               const Tensor made = torch::bmm(in, m.weights[s]), bent = torch::tanh(made);
               return in.size(1) == 3 ? made - bent : bent - made;
             }),
             ContainsSubstring("calls aten::sub.Tensor with other numbers or values"));
  CHECK_THAT(difference_of([](ExpertChain& m, std::size_t s, const Tensor& in) {
               const Tensor made = torch::bmm(in, m.weights[s]), bent = torch::tanh(made);
               return in.size(1) == 3 ? made * bent : made * made;
             }),
             ContainsSubstring("calls aten::mul.Tensor with other numbers or values"));
}

}  // namespace
}  // namespace stagecraft
