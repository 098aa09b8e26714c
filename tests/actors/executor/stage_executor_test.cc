/// Compares ranks on plain threads with one process: the same bits for any cut and order, and a
/// failure changes nothing.
#include <torch/torch.h>

#include "stagecraft/compiler/compile.h"
#include "stagecraft/compiler/shapes/shape_captures.h"
#include "stagecraft/scheduler/builders/gpipe.h"
#include "stagecraft/scheduler/builders/one_f_one_b.h"
#include "stagecraft/scheduler/builders/zero_bubble/zb_h1.h"
#include "stagecraft/tests/actors/executor/pipeline.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/modules.h"

namespace stagecraft {
namespace {

using Catch::Matchers::ContainsSubstring;
using testing::differing;
using testing::mean_square;
using testing::Pipeline;
using testing::PipelineOptions;

constexpr int kMicrobatches = 4;

struct Case {
  Program program;
  std::vector<Batch> inputs, labels;
};

template <class Module>
Case make_case(Module& module,
               const std::vector<std::vector<std::int64_t>>& shapes,
               const std::vector<std::int64_t>& label) {
  torch::manual_seed(11);
  std::vector<Batch> batches, labels;
  for (int step = 0; step < 3; ++step) {
    Batch inputs;
    for (const auto& shape : shapes) {
      inputs.emplace_back(torch::randn(shape));
    }
    batches.push_back(std::move(inputs));
    labels.push_back({torch::randn(label)});
  }
  Program program = compile(module,
                            {.inputs = batches[0],
                             .labels = labels[0],
                             .loss = mean_square,
                             .microbatches = kMicrobatches});
  return {std::move(program), std::move(batches), std::move(labels)};
}

/// Trains three steps both ways; every loss and every state tensor must have the same bits.
void check_bit_equal(const Case& c, const Schedule& schedule, PipelineOptions options = {}) {
  options.record_timeline = true;
  Pipeline pipeline(c.program, schedule, options);
  Reference reference(c.program, options.optimizer, {.clip = options.clip, .seed = 5});
  for (std::size_t step = 0; step < c.inputs.size(); ++step) {
    const auto outcome = pipeline.step(c.inputs[step], c.labels[step]);
    for (const auto& error : outcome.errors) {
      INFO((error ? error->what() : ""));
      REQUIRE_FALSE(error.has_value());
    }
    const ReferenceStep expected = reference.step(c.inputs[step], c.labels[step]);
    CHECK((outcome.losses == expected.losses));
    CHECK(testing::same_norm(outcome.reports[0].gradient_norm, expected.gradient_norm));
    CHECK(testing::held_at_end(outcome) == 0);
  }
  CHECK((differing(pipeline.state(), reference.state()) == std::vector<std::string>{}));
}

TEST_CASE("a chain trains bit-equal for gpipe, 1F1B, folded and split schedules",
          "[executor][fidelity]") {
  torch::manual_seed(1);
  testing::Chain module(4);
  const Case c = make_case(module, {{8, 8}}, {8, 8});
  check_bit_equal(c, gpipe(c.program.stage_graph(), kMicrobatches));
  check_bit_equal(c, one_f_one_b(c.program.stage_graph(), kMicrobatches));
  check_bit_equal(c,
                  one_f_one_b(c.program.stage_graph(), kMicrobatches),
                  {.optimizer = AdamW{.lr = 1e-2}, .clip = 0.01});
  const Schedule folded = Schedule::parse(
      "@form list\n"
      "0F0 1F0 0F1 1F1 0F2 1F2 0F3 1F3 1B0 0B0 1B1 0B1 1B2 0B2 1B3 0B3\n"
      "2F0 3F0 3B0 2B0 2F1 3F1 3B1 2B1 2F2 3F2 3B2 2B2 2F3 3F3 3B3 2B3\n");
  check_bit_equal(c, folded);
  const Schedule split = Schedule::parse(
      "@form list\n"
      "0F0 1F0 0F1 1F1 0F2 1F2 0F3 1F3 1I0 0I0 1I1 0I1 0W0 1W0 1I2 0I2 0W1 1W1 1I3 0I3 0W2 1W2 0W3 "
      "1W3\n"
      "2F0 3F0 3I0 2I0 2F1 3F1 3I1 2I1 2F2 3F2 3I2 2I2 2F3 3F3 3I3 2I3 2W0 3W0 2W1 3W1 2W2 3W2 2W3 "
      "3W3\n");
  check_bit_equal(c, split);
}

TEST_CASE("a skip connection trains bit-equal", "[executor][fidelity]") {
  torch::manual_seed(2);
  testing::SkipNet module;
  const Case c = make_case(module, {{8, 6}}, {8, 3});
  check_bit_equal(c, one_f_one_b(c.program.stage_graph(), kMicrobatches));
  check_bit_equal(c, gpipe(c.program.stage_graph(), kMicrobatches));
}

TEST_CASE("two encoders and a head train bit-equal", "[executor][fidelity]") {
  torch::manual_seed(3);
  testing::TwoTowers module;
  const Case c = make_case(module, {{8, 6}, {8, 5}}, {8, 3});
  check_bit_equal(c, one_f_one_b(c.program.stage_graph(), kMicrobatches));
}

TEST_CASE("a value that three stages read trains bit-equal", "[executor][fidelity]") {
  struct Fan : torch::nn::Module {
    torch::nn::Linear a{nullptr}, b{nullptr}, c{nullptr}, d{nullptr};
    Fan() {
      a = register_module("a", torch::nn::Linear(8, 8));
      b = register_module("b", torch::nn::Linear(8, 8));
      c = register_module("c", torch::nn::Linear(8, 8));
      d = register_module("d", torch::nn::Linear(8, 8));
    }
    torch::Tensor forward(torch::Tensor x) {
      const auto h = stage("a", [&] { return torch::tanh(a(x)); });
      const auto p =
          stage("b", [&] { return torch::sigmoid(b(h)) + h.transpose(0, 1).matmul(h).sum(); });
      const auto q = stage("c", [&] { return torch::tanh(c(h)) * p + h; });
      return stage("d", [&] { return d(h) + p + q; });  // reads h once more
    }
  } module;
  torch::manual_seed(4);
  const Case c = make_case(module, {{8, 8}}, {8, 8});
  check_bit_equal(c, one_f_one_b(c.program.stage_graph(), kMicrobatches));
}

TEST_CASE("frozen stages, dropout and batch statistics train bit-equal", "[executor][fidelity]") {
  struct Mixed : torch::nn::Module {
    torch::nn::Linear a{nullptr}, b{nullptr}, c{nullptr};
    torch::nn::BatchNorm1d norm{nullptr};
    Mixed() {
      a = register_module("a", torch::nn::Linear(8, 8));
      b = register_module("b", torch::nn::Linear(8, 8));
      c = register_module("c", torch::nn::Linear(8, 8));
      norm = register_module("norm", torch::nn::BatchNorm1d(8));
      for (auto& p : a->parameters()) {
        p.requires_grad_(false);
      }
    }
    torch::Tensor forward(torch::Tensor x) {
      const auto h = stage("frozen", [&] { return torch::relu(a(x)); });
      const auto m = stage("middle", [&] { return torch::dropout(norm(b(h)), 0.3, true); });
      return stage("last", [&] { return c(m); });
    }
  } module;
  torch::manual_seed(5);
  const Case c = make_case(module, {{16, 8}}, {16, 8});
  check_bit_equal(c, one_f_one_b(c.program.stage_graph(), kMicrobatches));
  CHECK(torch::equal(module.norm->running_mean, torch::zeros({8})));  // the program has its own
}

/// Has two stages of a convolution, a group norm and a gate.
struct ImageNet : torch::nn::Module {
  torch::nn::Conv2d first{
      register_module("first", torch::nn::Conv2d(torch::nn::Conv2dOptions(3, 8, 3).padding(1)))};
  torch::nn::GroupNorm norm1{register_module("norm1", torch::nn::GroupNorm(2, 8))};
  torch::nn::Conv2d second{
      register_module("second", torch::nn::Conv2d(torch::nn::Conv2dOptions(8, 8, 3).padding(1)))};
  torch::nn::GroupNorm norm2{register_module("norm2", torch::nn::GroupNorm(2, 8))};

  torch::Tensor forward(torch::Tensor x) {
    const auto h = stage("first", [&] { return torch::silu(norm1(first(x))); });
    return stage("second", [&] { return torch::silu(norm2(second(h))).mean({2, 3}); });
  }
};

TEST_CASE("a channels-last batch trains with the bits of a plain loop, by split backwards too",
          "[executor][fidelity][memory-order]") {
  constexpr int kImages = 8;
  torch::manual_seed(12);
  ImageNet module;
  const bool as_example = GENERATE(true, false);  // otherwise it is captured once more
  const torch::Tensor image = torch::randn({kImages, 3, 8, 8});
  const torch::Tensor batch = image.contiguous(torch::MemoryFormat::ChannelsLast);
  const torch::Tensor label = torch::randn({kImages, 8});
  const Program program = compile(module,
                                  {.inputs = {as_example ? batch : image},
                                   .labels = {label},
                                   .loss = mean_square,
                                   .microbatches = kMicrobatches});
  Reference reference(program, Sgd{.lr = 0.1}, {.seed = 5});
  const ReferenceStep step = reference.step({batch}, {label});
  CHECK(program.shape_captures()->count() == (as_example ? 1 : 2));
  at::set_num_threads(1);
  for (std::size_t m = 0; m < kMicrobatches; ++m) {
    const auto loss =
        mean_square(module.forward(batch.chunk(kMicrobatches)[m]), label.chunk(kMicrobatches)[m]);
    CHECK(loss.item<double>() == step.losses[m]);
    loss.backward();
  }
  std::map<std::string, torch::Tensor> eager;
  for (const auto& p : module.named_parameters()) {
    eager[p.key()] = p.value().grad() / kMicrobatches;
  }
  CHECK((differing(eager, reference.gradients()) == std::vector<std::string>{}));
  if (as_example) {
    const Case c{program, {{batch}}, {{label}}};
    check_bit_equal(c, one_f_one_b(program.stage_graph(), kMicrobatches));
    check_bit_equal(c, zb_h1(2, kMicrobatches));
  }
}

TEST_CASE("evaluation runs forward only and changes nothing", "[executor]") {
  torch::manual_seed(7);
  testing::Chain module(2);
  const Case c = make_case(module, {{8, 8}}, {8, 8});
  Pipeline pipeline(c.program, one_f_one_b(c.program.stage_graph(), kMicrobatches));
  const auto before = pipeline.state();
  const auto evaluated = pipeline.step(c.inputs[0], c.labels[0], false);
  std::vector<StateTensor> after;
  for (const auto& [name, tensor] : pipeline.state()) {
    after.push_back({name, tensor});
  }
  CHECK((differing(before, after) == std::vector<std::string>{}));
  CHECK((evaluated.losses == pipeline.step(c.inputs[0], c.labels[0]).losses));
}

TEST_CASE("a rank that throws names its place; no weight changes and the next step works",
          "[executor][failure]") {
  torch::manual_seed(8);
  testing::Chain module(3);
  const Case c = make_case(module, {{8, 8}}, {8, 8});
  bool armed = true;
  PipelineOptions options;
  options.faults[Rank(1)] = [&armed](const Instruction& i) {
    if (armed && i.op == Op::Run && i.task.kind == CellKind::Backward &&
        i.task.microbatch == Microbatch(2)) {
      armed = false;
      throw std::bad_alloc();
    }
  };
  Pipeline pipeline(c.program, one_f_one_b(c.program.stage_graph(), kMicrobatches), options);
  const auto before = pipeline.state();
  const auto failed = pipeline.step(c.inputs[0], c.labels[0]);
  REQUIRE(failed.errors[1].has_value());
  CHECK(failed.errors[1]->code() == Errc::DeviceOutOfMemory);
  CHECK(failed.errors[1]->context().stage == StageId(1));
  CHECK(failed.errors[1]->context().microbatch == Microbatch(2));
  CHECK(failed.errors[1]->context().task == "1B2");
  for (const int r : {0, 2}) {
    REQUIRE(failed.errors[static_cast<std::size_t>(r)].has_value());
    CHECK(failed.errors[static_cast<std::size_t>(r)]->code() == Errc::WorkerAborted);
  }
  std::vector<StateTensor> after;
  for (const auto& [name, tensor] : pipeline.state()) {
    after.push_back({name, tensor});
  }
  CHECK((differing(before, after) == std::vector<std::string>{}));

  Reference reference(c.program, options.optimizer, {.seed = 5});
  const auto next = pipeline.step(c.inputs[0], c.labels[0]);
  CHECK((next.losses == reference.step(c.inputs[0], c.labels[0]).losses));
  CHECK((differing(pipeline.state(), reference.state()) == std::vector<std::string>{}));
}

TEST_CASE("two plans on one network run at once, and the failure of one is nothing to the other",
          "[executor][failure]") {
  torch::manual_seed(12);
  testing::Chain module(2);
  const Case c = make_case(module, {{8, 8}}, {8, 8});
  const Schedule schedule = one_f_one_b(c.program.stage_graph(), kMicrobatches);
  const auto network = std::make_shared<InprocNetwork>(2);
  bool armed = true;
  PipelineOptions failing{.plan_id = PlanId(1), .network = network};
  failing.faults[Rank(1)] = [&armed](const Instruction& i) {
    if (i.op == Op::Vote && std::exchange(armed, false)) {
      throw std::bad_alloc();
    }
  };
  Pipeline first(c.program, schedule, failing);
  Pipeline second(c.program, schedule, {.plan_id = PlanId(2), .network = network});
  Pipeline::Outcome failed, other;
  std::thread beside([&] { other = second.step(c.inputs[0], c.labels[0]); });
  failed = first.step(c.inputs[0], c.labels[0]);
  beside.join();
  CHECK(failed.errors[1].has_value());
  CHECK_FALSE(other.errors[0].has_value());
  CHECK_FALSE(other.errors[1].has_value());

  // The runs alternate, with equal submissions and edges.
  Reference reference(c.program, failing.optimizer, {.seed = 5});
  (void)reference.step(c.inputs[0], c.labels[0]);
  CHECK((second.step(c.inputs[1], c.labels[1]).losses ==
         reference.step(c.inputs[1], c.labels[1]).losses));
  Reference behind(c.program, failing.optimizer, {.seed = 5});
  CHECK((first.step(c.inputs[0], c.labels[0]).losses ==
         behind.step(c.inputs[0], c.labels[0]).losses));
  CHECK((differing(first.state(), behind.state()) == std::vector<std::string>{}));
  CHECK((differing(second.state(), reference.state()) == std::vector<std::string>{}));
}

TEST_CASE("a gradient that is not finite stops every rank before any weight changes",
          "[executor][failure]") {
  torch::manual_seed(9);
  testing::Chain module(2);
  Case c = make_case(module, {{8, 8}}, {8, 8});
  Pipeline pipeline(c.program, one_f_one_b(c.program.stage_graph(), kMicrobatches));
  const auto before = pipeline.state();
  const Batch huge{c.labels[0][0].tensor * 1e30};  // its square is infinite
  const auto outcome = pipeline.step(c.inputs[0], huge);
  int non_finite = 0;
  for (const auto& error : outcome.errors) {
    REQUIRE(error.has_value());
    non_finite += error->code() == Errc::NonFinite ? 1 : 0;
  }
  CHECK(non_finite >= 1);
  std::vector<StateTensor> after;
  for (const auto& [name, tensor] : pipeline.state()) {
    after.push_back({name, tensor});
  }
  CHECK((differing(before, after) == std::vector<std::string>{}));
}

}  // namespace
}  // namespace stagecraft
