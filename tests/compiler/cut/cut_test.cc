/// Tests cuts without markers: where they may be, how they are named, and the order of memory in
/// which values cross them.
#include "stagecraft/compiler/cut/cut.h"

#include <torch/torch.h>

#include "stagecraft/base/error.h"
#include "stagecraft/compiler/compile.h"
#include "stagecraft/compiler/cut/cut_file.h"
#include "stagecraft/compiler/cut/cut_points.h"
#include "stagecraft/compiler/libtorch/memory_order.h"
#include "stagecraft/compiler/program/compiled_program.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/modules.h"
#include "stagecraft/tests/support/refusal.h"

namespace stagecraft {
namespace {

using Catch::Matchers::ContainsSubstring;
using testing::mean_square;

/// Has embed, layers.0 to layers.3 (a linear layer and tanh each), and head, without markers.
struct Tower : torch::nn::Module {
  torch::nn::Linear embed{register_module("embed", torch::nn::Linear(8, 8))};
  torch::nn::ModuleList layers{register_module("layers", torch::nn::ModuleList())};
  torch::nn::Linear head{register_module("head", torch::nn::Linear(8, 8))};
  Tower() {
    for (int i = 0; i < 4; ++i) {
      layers->push_back(torch::nn::Linear(8, 8));
    }
  }
  torch::Tensor forward(torch::Tensor x) {
    x = embed(x);
    for (const auto& layer : *layers) {
      x = torch::tanh(layer->as<torch::nn::Linear>()->forward(x));
    }
    return head(x);
  }
};

template <class Module>
Program cut_program(Module& module, const Cut& cut) {
  const auto x = torch::randn({4, 8});
  return compile(module,
                 {.inputs = {x},
                  .labels = {torch::randn({4, 8})},
                  .loss = mean_square,
                  .microbatches = 2,
                  .cut = cut});
}

std::vector<int> firsts(const Program& program) {
  std::vector<int> numbers;
  for (const StageCut& stage : program.cut().stages) {
    numbers.push_back(stage.first);
  }
  return numbers;
}

/// Returns costs in which operator n takes `times[n]`.
std::vector<OperatorCost> costs_of(const Program& program, std::vector<double> times = {}) {
  std::vector<OperatorCost> costs;
  for (const Node& node : program.compiled().graph.nodes) {
    costs.push_back({.name = operator_name(node),
                     .forward = costs.size() < times.size() ? times[costs.size()] : 1});
  }
  return costs;
}

TEST_CASE("a model is cut before the first operator below a path, or before an operator",
          "[compiler][cut]") {
  Tower module;
  const Program program = cut_program(module, At{"layers.1", "layers.3", "op:14"});
  // A linear layer is two operators, because one transposes its weight.
  CHECK(firsts(program) == std::vector<int>{0, 5, 11, 14});
  const std::vector<StageCut>& stages = program.cut().stages;
  CHECK(stages[0].place.empty());
  CHECK(stages[1].place == "between layers.0 and layers.1");
  CHECK(stages[3].place == "between layers and head");
  CHECK(stages[1].name == "layers.1");
  CHECK(stages[1].parameter_bytes == 2 * (8 * 8 + 8) * sizeof(float));
  CHECK(stages[1].crossing_bytes == 2 * 8 * sizeof(float));
  CHECK(stages[3].crossing_bytes == 0);
  CHECK(program.stage_graph().name(StageId(2)) == "layers.3");
  CHECK(firsts(cut_program(module, At{"embed", "head"})) == std::vector<int>{0, 14});
  CHECK_THAT(refusal([&] { (void)cut_program(module, At{"layer.1"}); }),
             ContainsSubstring("below \"layer.1\"") && ContainsSubstring("mean layers.1?"));
  CHECK_THAT(refusal([&] {
               (void)cut_program(module, At{"layers.2", "layers.1"});
             }),
             ContainsSubstring("\"layers.1\"") && ContainsSubstring("op:8"));
  CHECK_THAT(refusal([&] { (void)cut_program(module, At{"op:99"}); }),
             ContainsSubstring("op:99") && ContainsSubstring("op:0 to op:"));
}

TEST_CASE("a given cut overrides the markers", "[compiler][cut]") {
  testing::Chain module(3);
  CHECK(cut_program(module, AtMarkers()).stage_graph().size() == 3);
  CHECK(cut_program(module, At{"layer2"}).stage_graph().size() == 2);
}

TEST_CASE("a balanced cut makes the slowest stage fastest, by costs that are given or measured",
          "[compiler][cut]") {
  Tower module;
  const Program whole = cut_program(module, AtMarkers());
  const auto at_costs = [&](int stages, std::vector<double> times) {
    return Balanced{.stages = stages, .costs = costs_of(whole, std::move(times))};
  };
  // The cut is not between a transposed weight and its product, which would pass on the weight.
  CHECK(firsts(cut_program(module, at_costs(2, {100}))) == std::vector<int>{0, 2});
  CHECK(firsts(cut_program(module, at_costs(2, {0, 0, 0, 0, 0, 0, 0, 99, 0.1, 99}))) ==
        std::vector<int>{0, 8});
  const Program measured = cut_program(module, Balanced{.stages = 3});
  double total = 0;
  for (const StageCut& stage : measured.cut().stages) {
    CHECK(stage.time > 0);
    total += stage.time;
  }
  double of_operators = 0;
  for (const OperatorCost& cost : measured.cut().operators) {
    of_operators += cost.forward + cost.backward_input + cost.backward_weight;
    CHECK(cost.stage.value >= 0);
  }
  CHECK(total == Catch::Approx(of_operators));
  CHECK(measured.stage_graph().size() == 3);
  CHECK_THAT(to_string(measured.cut()),
             ContainsSubstring("stage 2: ") && ContainsSubstring(" ms\n"));

  const int operators = static_cast<int>(whole.compiled().graph.nodes.size());
  CHECK(cut_program(module, at_costs(operators, {})).stage_graph().size() == operators);
  CHECK_THAT(refusal([&] { (void)cut_program(module, at_costs(operators + 1, {})); }),
             ContainsSubstring("1 to " + std::to_string(operators) + " stages"));
  CHECK_THAT(refusal([&] { (void)cut_program(module, at_costs(0, {})); }),
             ContainsSubstring("found 0"));
  Balanced tight = at_costs(2, {});
  tight.memory_cap = 100;
  CHECK_THAT(refusal([&] { (void)cut_program(module, tight); }),
             ContainsSubstring("a stage may hold 100"));
  Balanced foreign = at_costs(2, {});
  foreign.costs.pop_back();
  CHECK_THAT(refusal([&] { (void)cut_program(module, foreign); }),
             ContainsSubstring("another model"));
}

TEST_CASE("an operator that writes in place stays with the users of its memory",
          "[compiler][cut]") {
  struct InPlace : torch::nn::Module {
    torch::nn::Linear a{register_module("a", torch::nn::Linear(8, 8))};
    torch::Tensor count{register_buffer("count", torch::zeros({1}))};
    torch::Tensor forward(torch::Tensor x) {
      auto y = a(x);      // 0 and 1
      auto z = y.tanh();  // 2
      y.mul_(2);          // 3
      z = z + y;          // 4
      count.add_(1);      // 5
      z = z.relu();       // 6
      return z * count;   // 7
    }
  } module;
  const Program program = cut_program(module, AtMarkers());
  const std::vector<std::size_t> points = cut_points(program.compiled().graph);
  REQUIRE(points.size() > 5);
  CHECK(points[4] == 8);
  CHECK(std::vector(points.begin(), points.begin() + 4) == std::vector<std::size_t>{0, 1, 4, 5});
  CHECK(firsts(cut_program(module, At{"op:3", "op:7"})) == std::vector<int>{0, 1, 5});
  CHECK_THAT(refusal([&] {
               (void)cut_program(module, At{"op:1", "op:3"});
             }),
             ContainsSubstring("\"op:3\"") && ContainsSubstring("op:1"));
}

TEST_CASE("sets of operators make stages that are no chain", "[compiler][cut]") {
  testing::TwoTowers module;
  const auto compiled = [&](const Cut& cut) {
    return compile(module,
                   {.inputs = {torch::randn({4, 6}), torch::randn({4, 5})},
                    .labels = {torch::randn({4, 3})},
                    .loss = mean_square,
                    .microbatches = 2,
                    .cut = cut});
  };
  const int last = static_cast<int>(compiled(AtMarkers()).compiled().graph.nodes.size()) - 1;
  const Program program = compiled(OperatorSets{{{{0, 2}}, {{3, 5}}, {{6, last}}}});
  CHECK((program.stage_graph().edges() == std::vector<std::pair<int, int>>{{0, 2}, {1, 2}}));
  CHECK(program.stage_graph().name(StageId(1)) == "text");
  const Cut again = read_cut(write_cut(program.cut()), "a.cut");
  CHECK(compiled(again).stage_graph().edges() == program.stage_graph().edges());

  const auto refused = [&](const OperatorSets& sets, Errc code = Errc::UsageArgument) {
    return refusal([&] { (void)compiled(sets); }, code);
  };
  CHECK_THAT(refused({{{{0, 1}}, {{3, last}}}}), ContainsSubstring("op:2 is in no stage"));
  CHECK_THAT(refused({{{{0, 2}}, {{2, last}}}}), ContainsSubstring("stages 0 and 1"));
  CHECK_THAT(refused({{{{0, last}}, {}}}), ContainsSubstring("stage 1 is empty"));
  CHECK_THAT(refused({{{{0, last + 1}}}}), ContainsSubstring("between 0 and"));
  CHECK_THAT(refused({{{{3, 1}}, {{0, last}}}}), ContainsSubstring("found 3-1"));
  CHECK_THAT(refused({{{{0, 0}, {4, last}}, {{1, 3}}}}, Errc::CompilePartition),
             ContainsSubstring("in a circle"));
}

TEST_CASE("a cut is read from text and written to it", "[compiler][cut]") {
  CHECK(read_cut("embed # first\n\n  layers.4\t# a comment\r\nop:7", "c") ==
        Cut(At{"layers.4", "op:7"}));
  CHECK(read_cut("{0-3 7}\n{4-6}\n", "c") == Cut(OperatorSets{{{{0, 3}, {7, 7}}, {{4, 6}}}}));
  CHECK(read_cut("anything", "c") == Cut(At()));
  CHECK(read_cut("# planned\n@microbatch-size 4\n{0-3}\n", "c") == Cut(OperatorSets{{{{0, 3}}}}));
  CHECK(microbatch_size_in_cut("@microbatch-size 4\n{0-3}\n", "c") == 4);
  CHECK(microbatch_size_in_cut("{0-3}\n", "c") == std::nullopt);
  const std::string_view of_model = "@operators 9 00000000000000ab\n@microbatch-size 4\nop:0\nop:7";
  At with_origin{"op:7"};
  with_origin.origin = {"c", {.operators = 9, .names = 0xab}};
  CHECK(read_cut(of_model, "c") == Cut(with_origin));
  CHECK(microbatch_size_in_cut(of_model, "c") == 4);
  Tower module;
  const Program program = cut_program(module, At{"layers.1", "head"});
  const std::string text = write_cut(program.cut());
  CHECK(firsts(cut_program(module, read_cut(text, "c"))) == firsts(program));
  CHECK_THAT(text, ContainsSubstring("op:5  # layers.1, between layers.0 and layers.1\n"));

  const auto refused = [](std::string_view cut) {
    return refusal([&] { (void)read_cut(cut, "my.cut"); }, Errc::UsageFile);
  };
  CHECK_THAT(refused(""), ContainsSubstring("my.cut") && ContainsSubstring("found none"));
  CHECK_THAT(refused("# nothing\n"), ContainsSubstring("found none"));
  CHECK_THAT(refused("a\nb c\n"), ContainsSubstring("line 2") && ContainsSubstring("\"b c\""));
  CHECK_THAT(refused("a\n{0-3}\n"), ContainsSubstring("line 2"));
  CHECK_THAT(refused("{0-3}\na\n"), ContainsSubstring("line 2") && ContainsSubstring("\"a\""));
  CHECK_THAT(refused("{0-3\n"), ContainsSubstring("line 1"));
  CHECK_THAT(refused("{0-x}\n"), ContainsSubstring("\"0-x\""));
  CHECK_THAT(refused("{-3}\n"), ContainsSubstring("\"-3\""));
  CHECK_THAT(refused("{99999999999}\n"), ContainsSubstring("99999999999"));
  CHECK_THAT(refused("@microbatch-size 0\n{0-3}\n"),
             ContainsSubstring("line 1: expected @microbatch-size with a number of samples"));
  CHECK_THAT(refused("@size 2\n{0-3}\n"),
             ContainsSubstring("expected @microbatch-size or @operators, found \"@size 2\""));
  CHECK_THAT(refused("@operators 12\n{0-3}\n"),
             ContainsSubstring("line 1: expected @operators with a number of operators"));
  CHECK_THAT(refused("@operatorss 9 00000000000000ab\n{0-3}\n"),
             ContainsSubstring("found \"@operatorss 9 00000000000000ab\""));
  CHECK_THAT(refused("@microbatch-size 2\n@microbatch-size 2\n{0-3}\n"),
             ContainsSubstring("line 2: ") && ContainsSubstring("keep one"));
  CHECK_THAT(refused("@microbatch-size 2\n"), ContainsSubstring("found none"));
}

TEST_CASE("the file of a cut is refused for a model of as many other operators",
          "[compiler][cut]") {
  struct Relu : Tower {
    torch::Tensor forward(torch::Tensor x) {
      x = embed(x);
      for (const auto& layer : *layers) {
        x = torch::relu(layer->as<torch::nn::Linear>()->forward(x));
      }
      return head(x);
    }
  } other;
  Tower module;
  const Program program = cut_program(module, At{"op:5", "op:11"});
  const std::string text = write_cut(program.cut());
  REQUIRE(text.starts_with("@operators "));
  const Cut cut = read_cut(text, "tower.cut");
  CHECK(firsts(cut_program(module, cut)) == std::vector<int>{0, 5, 11});
  const std::string count = std::to_string(program.compiled().graph.nodes.size());
  CHECK_THAT(refusal([&] { (void)cut_program(other, cut); }, Errc::UsageFile),
             ContainsSubstring("tower.cut was written for another model, with " + count) &&
                 ContainsSubstring("this model has " + count) && ContainsSubstring("--cut-out"));
  OperatorSets sets{.stages = {{{0, 4}}, {{5, std::stoi(count) - 1}}},
                    .origin = std::get<At>(cut).origin};
  CHECK(cut_program(module, sets).stage_graph().size() == 2);
  CHECK_THAT(refusal([&] { (void)cut_program(other, sets); }, Errc::UsageFile),
             ContainsSubstring("another model"));
  // Without the line, nothing is known of the model.
  const std::string old = text.substr(text.find('\n') + 1);
  CHECK(firsts(cut_program(other, read_cut(old, "old.cut"))) == std::vector<int>{0, 5, 11});
}

TEST_CASE("a refused operator is named by the nearest parameters", "[compiler][cut][capture]") {
  struct Deciding : Tower {
    torch::Tensor forward(torch::Tensor x) {
      const auto y = layers->at<torch::nn::LinearImpl>(2).forward(embed(x));
      const double scale = y.sum().item().toDouble();
      return head(y * scale);
    }
  } module;
  CHECK_THAT(refusal([&] { (void)cut_program(module, AtMarkers()); }, Errc::CompileCapture),
             ContainsSubstring("aten::item") && ContainsSubstring("(near layers.2)"));
}

TEST_CASE("a value crosses in the order of its memory", "[compiler][cut]") {
  const auto x = torch::randn({2, 3, 4, 5});
  const std::vector<torch::Tensor> tensors{x,
                                           x.transpose(1, 2),
                                           x.permute({3, 0, 2, 1}),
                                           x.contiguous(torch::MemoryFormat::ChannelsLast),
                                           x.transpose(0, 3).slice(1, 0, 2),
                                           x.select(1, 0),
                                           x.slice(3, 0, 1).expand({2, 3, 4, 7}),
                                           torch::randn({1, 5}).t(),
                                           torch::randn({})};
  for (const torch::Tensor& t : tensors) {
    CAPTURE(t.sizes().vec(), t.strides().vec());
    const MemoryOrder order = memory_order_of(t);
    const auto crossing = to_memory_order(t, order);
    CHECK(crossing.is_contiguous());
    CHECK(crossing.sizes().vec() == sizes_in_order(t.sizes().vec(), order));
    const auto back = from_memory_order(crossing, order);
    CHECK(back.equal(t));
    if (t.is_non_overlapping_and_dense()) {
      CHECK(back.strides() == t.strides());
      CHECK(crossing.data_ptr() == t.data_ptr());
    }
  }
  CHECK(memory_order_of(x).empty());
}

TEST_CASE("a view that the strides of a value allow is also possible after a cut",
          "[compiler][cut]") {
  struct Merge : torch::nn::Module {
    torch::nn::Linear a{register_module("a", torch::nn::Linear(8, 8))};
    torch::nn::Linear b{register_module("b", torch::nn::Linear(8, 8))};
    torch::Tensor forward(torch::Tensor x) {
      const auto y = a(x).view({-1, 2, 4}).transpose(0, 1);  // 0 to 3
      return b(y.transpose(0, 1).view({-1, 8}));             // from 4
    }
  } module;
  CHECK(firsts(cut_program(module, At{"op:4"})) == std::vector<int>{0, 4});
}

}  // namespace
}  // namespace stagecraft
