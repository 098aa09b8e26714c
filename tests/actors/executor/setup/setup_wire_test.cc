/// Checks that a rank's setup survives the wire: every form of program in the tests comes back as
/// the same bytes and computes the same bits, and other bytes are refused.
#include "stagecraft/actors/executor/setup/setup_wire.h"

#include <bit>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <iterator>
#include <limits>

#include <torch/torch.h>

#include "stagecraft/actors/executor/setup/verify_setup.h"
#include "stagecraft/base/error.h"
#include "stagecraft/compiler/compile.h"
#include "stagecraft/compiler/shapes/parts.h"
#include "stagecraft/compiler/stage/chunks.h"
#include "stagecraft/compiler/wire/program_wire.h"
#include "stagecraft/examples/models/llama.h"
#include "stagecraft/scheduler/builders/bidirectional/chimera.h"
#include "stagecraft/scheduler/builders/gpipe.h"
#include "stagecraft/scheduler/builders/one_f_one_b.h"
#include "stagecraft/scheduler/builders/zero_bubble/zb_h1.h"
#include "stagecraft/tests/actors/executor/pipeline.h"
#include "stagecraft/tests/actors/executor/setup/divided_setups.h"
#include "stagecraft/tests/actors/executor/setup/own_parts.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/modules.h"
#include "stagecraft/tests/support/refusal.h"

namespace stagecraft {
namespace {

using Catch::Matchers::ContainsSubstring;
using testing::differing;
using testing::mean_square;
using testing::own_list;
using testing::own_program;
using testing::own_tables;
using testing::Pipeline;

constexpr Errc kUnreadable = Errc::WireFormat;
constexpr int kSentMicrobatches = 2;

// ---- programs -----------------------------------------------------------------------------------

struct Trained {
  Program program;
  Batch inputs, labels;
};

template <class Module>
Trained trained(Module&& module, Batch inputs, Batch labels, Loss loss = mean_square) {
  return {compile(module,
                  {.inputs = inputs,
                   .labels = labels,
                   .loss = std::move(loss),
                   .microbatches = kSentMicrobatches}),
          inputs,
          labels};
}

/// Makes any function a module, with the parts that it uses.
struct Whole : torch::nn::Module {
  std::function<torch::Tensor(torch::Tensor)> body;
  torch::Tensor forward(torch::Tensor x) { return body(x); }
};

template <class Part>
Trained around(const Part& part, const std::function<torch::Tensor(torch::Tensor)>& body) {
  Whole module;
  module.register_module("part", part.ptr());
  module.body = body;
  const auto x = torch::randn({4, 5, 8});
  return trained(module, {x}, {torch::randn_like(body(x))});
}

torch::Tensor turned(const torch::Tensor& x) {
  return x.transpose(0, 1);
}

Trained skip() {
  return trained(testing::SkipNet(), {torch::randn({4, 6})}, {torch::randn({4, 3})});
}

Trained mixed() {
  using Kind = testing::MixedChain::Kind;
  return trained(
      testing::MixedChain(
          {Kind::Trained, Kind::Indices, Kind::Trained, Kind::Mask, Kind::Frozen, Kind::Trained}),
      {torch::randn({4, 8})},
      {torch::randn({4, 8})});
}

Trained tied() {
  return trained(testing::TiedChain(2), {torch::randn({4, 8})}, {torch::randn({4, 8})});
}

Trained attention() {
  torch::nn::MultiheadAttention part(torch::nn::MultiheadAttentionOptions(8, 2).dropout(0.1));
  return around(part, [part](torch::Tensor x) mutable {
    const auto s = turned(x);
    const auto memory = torch::tanh(s);
    return turned(std::get<0>(part(s, memory, memory)));
  });
}

Trained encoder() {
  torch::nn::TransformerEncoderLayer part(
      torch::nn::TransformerEncoderLayerOptions(8, 2).dim_feedforward(16));
  return around(part, [part](torch::Tensor x) mutable { return turned(part(turned(x))); });
}

Trained lstm() {
  torch::nn::LSTM part(torch::nn::LSTMOptions(8, 8).num_layers(2));
  return around(part,
                [part](torch::Tensor x) mutable { return turned(std::get<0>(part(turned(x)))); });
}

Trained gru() {
  torch::nn::GRU part(torch::nn::GRUOptions(8, 8).batch_first(true));
  return around(part, [part](torch::Tensor x) mutable { return std::get<0>(part(x)); });
}

Trained convolution() {
  torch::nn::Conv1d part(
      torch::nn::Conv1dOptions(5, 5, 3).padding(1).padding_mode(torch::kCircular));
  return around(part, [part](torch::Tensor x) mutable { return part(x); });
}

Trained several() {
  torch::nn::Sequential part(torch::nn::LayerNorm(torch::nn::LayerNormOptions({8})),
                             torch::nn::GELU(),
                             torch::nn::Dropout(0.2),
                             torch::nn::BatchNorm1d(5),
                             torch::nn::Linear(8, 8),
                             torch::nn::PReLU());
  return around(part, [part](torch::Tensor x) mutable { return part->forward(x); });
}

/// Uses lists of tensors with absent ones, complex numbers, text, autocast, random numbers, indices
/// and writes in place.
Trained everything() {
  torch::nn::Linear part(8, 8);
  return around(part, [part](torch::Tensor x) mutable {
    const auto [first, second] = [&] {
      const auto parts = x.split(4, 2);
      return std::pair(parts[0], parts[1]);
    }();
    auto h = torch::cat({second, first}, 2);
    h = h.index({torch::indexing::Slice(), torch::tensor({4, 3, 2, 1, 0})});
    h = torch::gelu(part(h), "tanh");
    h = h + torch::view_as_real(torch::view_as_complex(h.reshape({-1, 5, 4, 2}).contiguous()) *
                                c10::complex<double>(0.5, -0.25))
                .reshape_as(h);
    h = h * torch::bernoulli(torch::full_like(h, 0.5)) + torch::rand_like(h);
    auto mask = torch::zeros({5, 8});
    mask.fill_(0.5);
    h = h.clone().mul_(mask).clamp(-3.0, std::numeric_limits<double>::infinity());
    return h.masked_fill(torch::ones({5, 8}, torch::kBool).triu(1), -0.0);
  });
}

Trained trained_llama() {
  torch::Tensor tokens = torch::randint(0, 16, {4, 6}, torch::kLong);
  examples::Llama module(examples::LlamaOptions{
      .vocabulary = 16, .layers = 2, .dim = 8, .heads = 2, .ffn = 16, .sequence = 6, .stages = 2});
  return trained(*module, {tokens}, {tokens.roll(1, 1)}, examples::next_token_loss);
}

Trained in_chunks() {
  Trained given = skip();
  auto compiled = std::make_shared<CompiledProgram>(given.program.compiled());
  for (StageProgram& stage : compiled->partition.stages) {
    if (stage.operator_count() > 1) {
      cut_into_chunks(stage, {1});
      stage.chunks.back().recompute = true;
      stage.chunks.back().replayed_bytes = 12;
    }
  }
  given.program = Program(std::move(compiled));
  return given;
}

struct Row {
  std::string name;
  Trained (*make)();
  Schedule (*schedule)(int stages, int microbatches) = [](int s, int m) { return gpipe(s, m); };
};

const Row kWireRows[] = {
    {"skip", skip, [](int s, int m) { return one_f_one_b(s, m); }},
    {"mixed", mixed},
    {"attention", attention},
    {"encoder", encoder},
    {"lstm", lstm},
    {"gru", gru},
    {"convolution", convolution},
    {"several", several},
    {"everything", everything},
    {"llama", trained_llama, [](int s, int m) { return zb_h1(s, m); }},
    {"llama, two copies", trained_llama, [](int s, int m) { return chimera(s, m); }},
    {"tied", tied, [](int s, int m) { return zb_h1(s, m); }},
    {"chunks", in_chunks},
};

std::vector<RankSetup> sent_setups_of(const Program& program, const Schedule& schedule) {
  const Layout layout = Layout::of(schedule);
  const Job job{.plan_id = PlanId(7),
                .program = program.shared(),
                .train = std::make_shared<const Plan>(
                    lower_schedule(program, schedule, layout, /*training=*/true)),
                .optimizer = AdamW{.lr = 0.1},
                .options = {.learning_rate = {.kind = LearningRate::Kind::Wsd,
                                              .warmup = 2,
                                              .total_steps = 9,
                                              .decay = 3},
                            .groups = {{.match = "*.bias", .weight_decay = 0.0},
                                       {.match = "spare", .frozen = true}},
                            .decay_on = DecayOn::Matrices,
                            .clip_value = 0.7,
                            .average = 0.9,
                            .master_weights = true,
                            .seed = std::numeric_limits<std::uint64_t>::max()}};
  std::vector<RankSetup> setups;
  for (int r = 0; r < layout.ranks(); ++r) {
    setups.push_back(rank_setup(job, Rank(r)));
  }
  return setups;
}

/// Returns one stage of few operators.
RankSetup small_setup() {
  torch::manual_seed(3);
  testing::Chain module(1, 2);
  const auto x = torch::randn({2, 2});
  const Trained t = trained(module, {x}, {x});
  return sent_setups_of(t.program, gpipe(1, kSentMicrobatches)).front();
}

/// Returns the shape for microbatches of a batch of `rows`, for a setup of sent_setups_of().
RankShape shape_for(const Trained& t, std::int64_t rows, const RankSetup& setup) {
  const auto part = [&](const Batch& batch) {
    return Batch{batch[0].tensor.narrow(0, 0, rows).clone()};
  };
  const Parts parts = parts_of(t.program, part(t.inputs), part(t.labels));
  const std::shared_ptr<const OtherShape>& shape = parts.shapes.at(0);
  return rank_shape({.number = shape->number,
                     .random = shape->random,
                     .stages = {shape, &shape->stages},
                     .plan = nullptr},
                    setup.train);
}

TEST_CASE("SW-1: so do stages for another shape, and only ranks that they fit take them",
          "[executor][wire]") {
  torch::manual_seed(3);
  testing::Chain module(2, 2);
  const auto x = torch::randn({8, 2});
  const Trained t = trained(module, {x}, {x});
  const std::vector<RankSetup> setups = sent_setups_of(t.program, gpipe(2, kSentMicrobatches));
  const RankShape shape = shape_for(t, 4, setups[0]);
  const EncodedSetup sent = encode(shape);
  const RankShape got = decode_shape(sent.bytes, sent.tensors);
  CHECK(encode(got).bytes == sent.bytes);
  refusal([&] { (void)decode_setup(sent.bytes, sent.tensors); }, kUnreadable);
  const EncodedSetup setup = encode(setups[0]);
  refusal([&] { (void)decode_shape(setup.bytes, setup.tensors); }, kUnreadable);
  RankShape damaged = shape;
  own_program(damaged.stages).chunks[0].nodes[0].results[0] = ValueId(9999);
  const EncodedSetup wrong = encode(damaged);
  refusal([&] { (void)decode_shape(wrong.bytes, wrong.tensors); }, Errc::PlanInvalid);

  const auto executor_takes = [&](const RankShape& given) {
    InprocNetwork network(2);
    StageExecutor executor(setups[0], network.endpoint(Rank(0)));
    executor.add_shape(given);
    CHECK_THAT(refusal([&] { (void)executor.run({.parts = {{.count = 2, .shape = 7}}}); },
                       Errc::PlanInvalid),
               ContainsSubstring("was not told of"));
    for (const PartRun& run : {PartRun{1, 1, 1.0}, PartRun{3, 1, 1.0}, PartRun{2, 1, -1.0}}) {
      refusal([&] { (void)executor.run({.parts = {run}}); }, Errc::PlanInvalid);
    }
  };
  executor_takes(got);
  RankShape other = shape;
  other.rank = Rank(1);
  refusal([&] { executor_takes(other); }, Errc::PlanInvalid);
  other = shape;
  own_program(other.stages).parameters.pop_back();
  CHECK_THAT(refusal([&] { executor_takes(other); }, Errc::PlanInvalid),
             ContainsSubstring("does not use the parameter"));
  other = shape;
  own_program(other.stages).outputs.clear();
  CHECK_THAT(refusal([&] { executor_takes(other); }, Errc::PlanInvalid),
             ContainsSubstring("hands on 0 values"));
}

bool same_tensor(const torch::Tensor& a, const torch::Tensor& b) {
  return a.sizes() == b.sizes() && a.strides() == b.strides() && a.dtype() == b.dtype() &&
         a.unsafeGetTensorImpl()->is_wrapped_number() ==
             b.unsafeGetTensorImpl()->is_wrapped_number() &&
         torch::equal(a, b);
}

TEST_CASE("SW-1: every program comes back as the same bytes, and trains with the same bits",
          "[executor][wire]") {
  const Row& row = GENERATE(from_range(kWireRows));
  INFO(row.name);
  torch::manual_seed(17);
  const Trained t = row.make();
  const int stages = t.program.stage_graph().size();
  const Schedule schedule = row.schedule(stages, kSentMicrobatches);
  for (const RankSetup& setup : sent_setups_of(t.program, schedule)) {
    const EncodedSetup sent = encode(setup);
    REQUIRE(tensor_count(sent.bytes) == sent.tensors.size());
    const RankSetup got = decode_setup(sent.bytes, sent.tensors);
    CHECK(encode(got).bytes == sent.bytes);
    for (std::size_t s = 0; s < got.stages.size(); ++s) {
      const auto& there = got.stages[s]->constants;
      const auto& here = setup.stages[s]->constants;
      CHECK(std::ranges::equal(there, here, [](const auto& a, const auto& b) {
        return same_tensor(a.tensor, b.tensor);
      }));
    }
  }
  const Optimizer optimizer = Sgd{.lr = 0.1, .momentum = 0.9};
  Pipeline pipeline(t.program, schedule, {.optimizer = optimizer});  // it uses the decoded setups
  Reference reference(t.program, optimizer, {.seed = 5});
  for (int step = 0; step < 2; ++step) {
    const auto outcome = pipeline.step(t.inputs, t.labels);
    for (const auto& error : outcome.errors) {
      REQUIRE(error.value_or(Error(Errc::Internal, "")).message().empty());
    }
    const ReferenceStep expected = reference.step(t.inputs, t.labels);
    if (Layout::of(schedule).replicas() == 1) {
      CHECK(outcome.losses == expected.losses);
      CHECK(outcome.reports[0].gradient_norm == expected.gradient_norm);
    }
  }
  if (Layout::of(schedule).replicas() == 1) {
    CHECK((differing(pipeline.state(), reference.state()) == std::vector<std::string>{}));
  }
}

// ---- leaves -------------------------------------------------------------------------------------

/// Returns the setup with other constants; its stage gets their facts.
RankSetup with_constants(std::vector<torch::Tensor> constants) {
  RankSetup setup = small_setup();
  StageProgram& stage = own_program(setup.stages);
  for (torch::Tensor& tensor : constants) {
    const ValueId id(stage.values.rbegin()->first.value + 1);
    stage.values[id] = {
        .kind = ValueKind::Constant, .sizes = tensor.sizes().vec(), .dtype = tensor.scalar_type()};
    stage.constants.push_back({id, std::move(tensor)});
  }
  return setup;
}

TEST_CASE("WT-1: constants keep strides, gaps, shared elements and what they promote to",
          "[executor][wire]") {
  auto number = torch::tensor(0.1, torch::kDouble);
  number.unsafeGetTensorImpl()->set_wrapped_number(true);
  const auto base = torch::randn({6, 4});
  const RankSetup setup = with_constants({number,
                                          base.t(),
                                          base.slice(0, 1, 6, 2).slice(1, 1, 3),
                                          torch::randn({3, 1}).expand({3, 5}),
                                          torch::randn({}).expand({2, 3}),
                                          torch::zeros({0, 3}),
                                          torch::ones({2, 2}, torch::kBool),
                                          torch::randn({2, 2}, torch::kComplexFloat),
                                          torch::randn({3}).to(torch::kBFloat16),
                                          base});
  EncodedSetup sent = encode(setup);
  CHECK(sent.tensors.size() == 10);
  for (torch::Tensor& tensor : sent.tensors) {
    CHECK(tensor.dim() == 1);
    tensor = tensor.contiguous().clone();
  }
  const RankSetup got = decode_setup(sent.bytes, sent.tensors);
  CHECK(encode(got).bytes == sent.bytes);
  for (std::size_t c = 0; c < 10; ++c) {
    INFO(c);
    CHECK(same_tensor(got.stages[0]->constants[c].tensor, setup.stages[0]->constants[c].tensor));
  }
  SECTION("WT-2: what is met twice travels once") {
    CHECK(encode(with_constants({base, base})).tensors.size() == 1);
  }
  SECTION("other tensors than described are refused") {
    auto given = sent.tensors;
    given.pop_back();
    CHECK_THAT(refusal([&] { (void)decode_setup(sent.bytes, given); }, kUnreadable),
               ContainsSubstring("expected 10 tensors, found 9"));
    for (const auto& wrong : {torch::zeros({23}),
                              torch::zeros({4, 6}),
                              torch::Tensor(),
                              torch::zeros({24}, torch::kInt),
                              torch::zeros({1}).expand({24})}) {
      given = sent.tensors;
      given.back() = wrong;
      CHECK_THAT(refusal([&] { (void)decode_setup(sent.bytes, given); }, kUnreadable),
                 ContainsSubstring("24 elements of Float"));
    }
  }
}

/// Returns the setup with one more node in its stage: an operator on literals.
RankSetup with_node(Node node) {
  RankSetup setup = small_setup();
  own_program(setup.stages).chunks.front().nodes.push_back(std::move(node));
  return setup;
}

TEST_CASE("WL-1: every literal of an operator comes back as it was", "[executor][wire]") {
  const double nan = std::bit_cast<double>(std::uint64_t{0x7ff8000000abcdef});
  c10::List<at::Scalar> scalars;
  scalars.push_back(at::Scalar(1));
  scalars.push_back(at::Scalar(-0.0));
  const std::vector<c10::IValue> literals{
      {},
      at::Tensor(),
      true,
      std::numeric_limits<std::int64_t>::min(),
      -0.0,
      1e300,
      -std::numeric_limits<double>::infinity(),
      nan,
      3.0,
      c10::complex<double>(-0.0, nan),
      std::string("tanh \0 \xff", 8),
      std::vector<std::int64_t>{-1, 1 << 30},
      std::vector<std::int64_t>{},
      std::vector<double>{-0.0, nan},
      c10::List<bool>({true, false}),
      c10::List<c10::complex<double>>({{1, 2}}),
      c10::List<std::string>({"N", ""}),
      c10::impl::toList(scalars),
      c10::List<std::optional<at::Tensor>>({std::nullopt, std::nullopt})};
  for (const c10::IValue& literal : literals) {
    INFO(literal);
    wire::TensorTable none;
    wire::ProgramWriter out(none);
    wire::put(out, Operand(literal));
    const std::string bytes = out.take();
    wire::ProgramReader in(bytes);
    Operand got;
    wire::get(in, got);
    in.end();
    const auto& back = std::get<c10::IValue>(got);
    CHECK(back.tagKind() == literal.tagKind());
    if (literal.isList()) {
      CHECK(*back.toList().elementType() == *literal.toList().elementType());
    }
    if (literal.isDouble()) {
      CHECK(std::bit_cast<std::uint64_t>(back.toDouble()) ==
            std::bit_cast<std::uint64_t>(literal.toDouble()));
    }
    wire::put(out, got);
    CHECK(out.take() == bytes);
  }
}

TEST_CASE("SW-3: what exists in one process alone is refused by name, all of it",
          "[executor][wire]") {
  struct Reversed : torch::autograd::Function<Reversed> {
    static torch::Tensor forward(torch::autograd::AutogradContext*, torch::Tensor x) { return -x; }
    static torch::autograd::variable_list backward(torch::autograd::AutogradContext*,
                                                   torch::autograd::variable_list g) {
      return {-g[0]};
    }
  };
  struct Hooked : testing::SkipNet {
    torch::Tensor forward(torch::Tensor x) {
      const auto h = stage("first", [&] {
        auto made = torch::gelu(a(x));
        made.register_hook([](torch::Tensor g) { return g * 2; });
        return made;
      });
      return stage("last", [&] { return Reversed::apply(c(h)); });
    }
  };
  const Trained t = trained(Hooked(), {torch::randn({4, 6})}, {torch::randn({4, 3})});
  std::vector<RankSetup> setups = sent_setups_of(t.program, gpipe(2, kSentMicrobatches));
  setups[0].stages.push_back(setups[1].stages[0]);
  setups[0].options.before_instruction = [](Rank, const Instruction&) {};
  setups[0].optimizer = CustomOptimizer{.name = "lion", .update = [](const CustomUpdate&) {}};
  const std::string message = refusal([&] { (void)encode(setups[0]); });
  CHECK_THAT(message, ContainsSubstring("stage \"first\" has 1 hook on %"));
  CHECK_THAT(message, ContainsSubstring("stage \"last\" has custom function"));
  CHECK_THAT(message, ContainsSubstring("Reversed"));
  CHECK_THAT(message, ContainsSubstring("before_instruction"));
  CHECK_THAT(message, ContainsSubstring("the optimizer \"lion\" is a callable of this process"));
  CHECK_THAT(message, ContainsSubstring("as threads"));
  setups[1].optimizer = CustomOptimizer{};  // forged bytes could give this
  REQUIRE(verify(setups[1]).size() == 1);
  CHECK_THAT(verify(setups[1]).front(), ContainsSubstring("update is empty"));
  CHECK(wire::travel_size(*setups[1].stages[0]).program > 0);

  CHECK_THAT(refusal([] {
               (void)encode(with_node(
                   {.name = "aten::randn", .operands = {c10::IValue(c10::Device(c10::kCPU))}}));
             }),
             ContainsSubstring("aten::randn in stage \"s0\" has a literal of kind Device"));
  CHECK_THAT(refusal([] { (void)encode(with_constants({torch::eye(2).to_sparse()})); }),
             ContainsSubstring("it is not dense"));
  CHECK_THAT(refusal([] { (void)encode(with_constants({torch::eye(2).requires_grad_()})); }),
             ContainsSubstring("requires a gradient"));
}

// ---- wrong bytes --------------------------------------------------------------------------------

std::string fault_in(const std::string& bytes, const std::vector<torch::Tensor>& tensors = {}) {
  return refusal([&] { (void)decode_setup(bytes, tensors); }, kUnreadable);
}

TEST_CASE("bytes that are no setup of this version are refused, and say why", "[executor][wire]") {
  const std::string good = encode(small_setup()).bytes;
  REQUIRE(tensor_count(good) == 0);
  CHECK_THAT(fault_in(""), ContainsSubstring("do not begin like a setup"));
  CHECK_THAT(fault_in("STGCRAFT" + good.substr(8)), ContainsSubstring("do not begin like a setup"));
  CHECK_THAT(fault_in(good + "\xc0"), ContainsSubstring("1 bytes follow its end"));
  std::string changed = good;
  const std::string known = "version " + std::to_string(kSetupVersion);
  changed[8] = 77;
  CHECK_THAT(fault_in(changed),
             ContainsSubstring("version 77, newer than " + known + ", which this program knows"));
  changed[8] = 0;
  CHECK_THAT(fault_in(changed), ContainsSubstring("version 0, older than " + known));
  changed = good;
  changed[16] = 1;
  CHECK_THAT(fault_in(changed, {torch::zeros({1})}),
             ContainsSubstring("begins with 1 tensors and describes 0"));
  changed[23] = 1;
  CHECK_THAT(fault_in(changed), ContainsSubstring("claims 72057594037927937 tensors"));
  for (std::size_t length = 0; length < good.size(); ++length) {
    (void)fault_in(good.substr(0, length));
  }
  CHECK_THAT(fault_in(good.substr(0, good.size() - 1)), ContainsSubstring("end within a value"));
}

TEST_CASE("WR-1, WR-2: bytes that claim what they have not are refused before memory is taken",
          "[executor][wire]") {
  const std::string head = encode(small_setup()).bytes.substr(0, 24);
  CHECK_THAT(fault_in(head + "\x92\xdd\xff\xff\xff\xff"), ContainsSubstring("claim 4294967297"));
  CHECK_THAT(fault_in(head + "\x92\xdf\xff\xff\xff\xff"), ContainsSubstring("claim 8589934592"));
  CHECK_THAT(fault_in(head + "\x92\xdb\xff\xff\xff\xff"), ContainsSubstring("end within a value"));
  std::string each;  // every list claims the length of the rest
  for (int i = 0; i < 30; ++i) {
    each += std::string("\xdd\0\0\0\x40", 5);
  }
  CHECK_THAT(fault_in(head + each), ContainsSubstring("claim"));
  CHECK_THAT(fault_in(head + std::string(100'000, '\x91')), ContainsSubstring("deeper than 32"));
  CHECK_THAT(fault_in(head + "\xc1"), ContainsSubstring("begins no value"));
  CHECK_THAT(fault_in(head + "\xc4\x01x"), ContainsSubstring("binary"));
  CHECK_THAT(fault_in(head + "\x93\x90\x90\x90"), ContainsSubstring("a setup has 2 values, not 3"));
  CHECK_THAT(fault_in(head + "\x92\x90\xc0"), ContainsSubstring("expected an array, found nil"));
}

TEST_CASE("any byte may be wrong: the setup is refused, or is one", "[executor][wire]") {
  const EncodedSetup sent = encode(small_setup());
  int refused = 0;
  for (std::size_t at = 0; at < sent.bytes.size(); ++at) {
    for (const int byte : {0x00, 0x7f, 0x92, 0xc0, 0xcf, 0xdd, 0xff, sent.bytes[at] ^ 1}) {
      std::string bytes = sent.bytes;
      bytes[at] = static_cast<char>(byte);
      try {
        const RankSetup got = decode_setup(bytes, sent.tensors);
        const std::string again = encode(got).bytes;
        CHECK(encode(decode_setup(again, sent.tensors)).bytes == again);
      } catch (const Error& error) {
        ++refused;
        CHECK((error.code() == kUnreadable || error.code() == Errc::PlanInvalid));
      }
    }
  }
  CHECK(refused > std::ssize(sent.bytes));
}

// ---- wrong setups -------------------------------------------------------------------------------

/// A setup with parts of its own, to be spoiled.
struct Spoiled : RankSetup {
  explicit Spoiled(const RankSetup& sound) : RankSetup(sound) {}

  StageProgram& stage = own_program(stages);
  Node& node = stage.chunks.front().nodes.front();
  RankList& list = own_list(train);
  PlanTables& tables = own_tables(train);
};

struct Wrong {
  std::string expected;
  std::function<void(Spoiled&)> change;
};

PlanGroup tie(const std::vector<int>& stages,
              const std::vector<int>& ranks,
              const std::string& parameter = "layer0.weight") {
  return {.kind = PlanGroup::Kind::Tie,
          .bucket = -1,
          .stages = {stages.begin(), stages.end()},
          .parameters = {parameter},
          .sets = {{ranks.begin(), ranks.end()}}};
}

void replays(Spoiled& s, bool recompute, std::int64_t bytes) {
  s.stage.chunks.front().recompute = recompute;
  s.stage.chunks.front().replayed_bytes = bytes;
}

TEST_CASE("SW-2: a setup that says what cannot be run is refused", "[executor][wire]") {
  const ValueId nobody(12345);
  const Wrong wrongs[] = {
      {"has no chunk", [](auto& s) { s.stage.chunks.clear(); }},
      {"reads %12345", [&](auto& s) { s.node.operands[0] = nobody; }},
      {"reads %-1", [](auto& s) { s.node.operands[0] = kNoValue; }},
      {"reads %-1", [](auto& s) { s.node.operands[0] = ValueList{{kNoValue}}; }},
      {"which is not made by then",
       [](auto& s) {
         auto& nodes = s.stage.chunks.front().nodes;
         std::swap(nodes.front(), nodes.back());
       }},
      {"is not known in this process", [](auto& s) { s.node.name = "mine::own"; }},
      {"aten::from_file is not one that a program of another process may call",
       [](auto& s) { s.node.name = "aten::from_file", s.node.overload = ""; }},
      {"aten::resize_ is not one",
       [](auto& s) { s.node.name = "aten::resize_", s.node.overload = ""; }},
      {"profiler::_record_function_exit is not one",
       [](auto& s) {
         s.node.name = "profiler::_record_function_exit";
         s.node.overload = "";
       }},
      {"operands, and gets", [](auto& s) { s.node.operands.pop_back(); }},
      {"and gets something else", [](auto& s) { s.node.operands[0] = c10::IValue(1); }},
      {"and gets something else", [](auto& s) { s.node.operands[0] = StageDevice{}; }},
      {"and the stage keeps 0", [](auto& s) { s.node.results.clear(); }},
      {"an answer is expected", [](auto& s) { s.node.answer = true; }},
      {"calls the function 0", [](auto& s) { s.node.function = 0; }},
      {"calls the function -7", [](auto& s) { s.node.function = -7; }},
      {"has hooks 3", [](auto& s) { s.stage.values.begin()->second.hooks = 3; }},
      {"no value is numbered -5", [](auto& s) { s.stage.values[ValueId(-5)] = {}; }},
      {"a value that an operator writes is %12345",
       [&](auto& s) { s.node.writes.push_back(nobody); }},
      {"a value that an operator makes is %12345", [&](auto& s) { s.node.results[0] = nobody; }},
      {"an input is %12345", [&](auto& s) { s.stage.inputs[0].value = nobody; }},
      {"a chunk passes on %-1",
       [](auto& s) { s.stage.chunks.front().outputs.push_back(kNoValue); }},
      {"no chunk makes its output",
       [](auto& s) {
         s.stage.outputs.push_back({s.stage.parameters[0].value, {StageId(0)}, {true}});
       }},
      {"whether they send a gradient",
       [](auto& s) {
         s.stage.outputs.push_back({s.stage.inputs[0].value, {StageId(0)}, {}});
         s.stage.chunks[0].outputs.push_back(s.stage.inputs[0].value);
       }},
      {"a chunk reads %12345", [&](auto& s) { s.stage.chunks[0].inputs.push_back(nobody); }},
      {"a parameter is %12345", [&](auto& s) { s.stage.parameters[0].value = nobody; }},
      {"the shape or type of",
       [](auto& s) {
         s.stage.values[s.stage.parameters[0].value].sizes = {1LL << 40, 1LL << 40};
       }},
      {"the shape or type of",
       [](auto& s) { s.stage.values[s.stage.parameters[0].value].sizes = {-1}; }},
      {"is to be trained, but has no gradient",
       [](auto& s) { s.stage.values[s.stage.parameters[0].value].dtype = at::kLong; }},
      {"owes a gradient, but its type has none",
       [](auto& s) {
         s.stage.inputs[0].owes_gradient = true;
         s.stage.values[s.stage.inputs[0].value].dtype = at::kLong;
       }},
      {"has strides that do not fit",
       [](auto& s) {
         s.stage.buffers.push_back(
             {.name = "b", .value = s.stage.parameters[0].value, .strides = {1LL << 60, 1}});
       }},
      {"measured bytes", [](auto& s) { s.stage.saved_bytes = -1; }},
      {"-1 bytes that a chunk replays", [](auto& s) { replays(s, true, -1); }},
      {"bytes that a chunk replays", [](auto& s) { replays(s, true, INT64_MAX); }},
      {"7 bytes that a chunk replays", [](auto& s) { replays(s, false, 7); }},
      {"it has 2 stages, and its list has 1",
       [](auto& s) { s.stages.push_back(s.stages.front()); }},
      {"stage 0 follows stage 0",
       [](auto& s) {
         s.stages.push_back(s.stages.front());
         s.list.stages.push_back(s.list.stages.front());
       }},
      {"is number 9 of 2", [](auto& s) { s.stage.parameters[0].position = 9; }},
      {"the model has -1 parameters", [](auto& s) { s.model_parameters = -1; }},
      {"rank 4 is not one of them", [](auto& s) { s.train.rank.rank = Rank(4); }},
      {"from microbatch 5 on", [](auto& s) { s.train.rank.first_microbatch = 5; }},
      {"a step has 0 microbatches", [](auto& s) { s.tables.microbatches = 0; }},
      {"a stage takes 0 of 2 microbatches", [](auto& s) { s.tables.stages[0].size = 0; }},
      {"has the program of another",
       [](auto& s) {
         s.tables.stages.push_back(s.tables.stages[0]);
         s.tables.stages[0].program = StageId(1);
       }},
      {"has a bucket of 4 chunks from chunk 0 on, of 1",
       [](auto& s) { s.tables.buckets[0].chunks.count = 4; }},
      {"group 0 has ranks that do not vote",
       [](auto& s) {
         s.tables.groups = {{.bucket = 0, .stages = {StageId(0)}, .sets = {{Rank(1)}}}};
       }},
      {"the ranks of group 0 are not ascending",
       [](auto& s) {
         s.tables.groups = {{.bucket = 0, .stages = {StageId(0)}, .sets = {{Rank(0), Rank(0)}}}};
       }},
      {"group 1 sums or divides the bucket of another group of its kind",
       [](auto& s) {
         s.tables.groups = {{.bucket = 0, .stages = {StageId(0)}, .sets = {{Rank(0)}}},
                            {.bucket = 0, .stages = {StageId(0)}, .sets = {{Rank(0)}}}};
       }},
      {"group 0 has shards, and the rank is not on the CPU",
       [](auto& s) {
         s.options.device = "cuda";
         s.tables.groups = {{.bucket = 0,
                             .stages = {StageId(0)},
                             .sets = {{Rank(0)}},
                             .sharing = Sharing::States}};
       }},
      {"group 0 has no parameters",
       [](auto& s) {
         s.tables.groups = {tie({0}, {0})};
         s.tables.groups[0].parameters.clear();
       }},
      {"group 0 has no parameters, or a stage twice",
       [](auto& s) {
         s.tables.groups = {tie({0, 0}, {0, 0})};
       }},
      {"group 0 does not have one rank for each of its stages",
       [](auto& s) {
         s.tables.groups = {tie({0, 1}, {0})};
       }},
      {"group 0 has ranks that do not vote",
       [](auto& s) {
         s.tables.groups = {tie({0, 1}, {0, 1})};
       }},
      {"group 1 has stage 1 on other ranks",
       [](auto& s) {
         s.tables.groups = {tie({0}, {0}), tie({0, 1}, {0, 0})};
       }},
      {"group 1 has ranks with other shards of its stages",
       [](auto& s) {
         s.ranks.emplace_back(1);
         s.tables.groups = {{.bucket = 0,
                             .stages = {StageId(0)},
                             .sets = {{Rank(0), Rank(1)}},
                             .sharing = Sharing::States},
                            tie({0, 1}, {0, 1})};
       }},
      {"trains no parameter \"nobody\"",
       [](auto& s) { s.tables.groups = {tie({0}, {0}, "nobody")}; }},
      {"trains no parameter \"layer0.weight\"",
       [&](auto& s) {
         s.stage.parameters[0].trained = false;
         s.tables.groups = {tie({0}, {0})};
       }},
      {"sums over group 0, of which it is no member",
       [&](auto& s) {
         s.ranks.emplace_back(1);
         s.tables.groups = {tie({1}, {1})};
         s.list.instructions.push_back({.id = InstructionId(99), .op = Op::Start, .group = 0});
       }},
      {"the peers of its list for training are not the driver and other ranks",
       [](auto& s) { s.train.rank.peers.emplace_back(8); }},
      {"Sgd::lr", [](auto& s) { s.optimizer = Sgd{.lr = -1}; }},
      {"Adagrad::eps", [](auto& s) { s.optimizer = Adagrad{.eps = std::nan("")}; }},
      {"nesterov", [](auto& s) { s.optimizer = Sgd{.nesterov = true}; }},
      {"lr_scale of the parameter group \"*\"",
       [](auto& s) { s.options.groups = {{.match = "*", .lr_scale = -1.0}}; }},
      {"1 to 1000 characters", [](auto& s) { s.options.groups = {ParameterGroup{}}; }},
      {"linear", [](auto& s) { s.options.learning_rate = {.kind = LearningRate::Kind::Linear}; }},
      {"threads_per_worker", [](auto& s) { s.options.threads_per_worker = 0; }},
      {"is told to use 1000000 threads", [](auto& s) { s.options.threads_per_worker = 1'000'000; }},
      {"step_deadline",
       [](auto& s) { s.options.step_deadline = std::chrono::milliseconds::max(); }},
  };
  const RankSetup good = small_setup();
  for (const Wrong& wrong : wrongs) {
    INFO(wrong.expected);
    Spoiled setup(good);
    wrong.change(setup);
    const EncodedSetup sent = encode(setup);
    CHECK_THAT(refusal([&] { (void)decode_setup(sent.bytes, sent.tensors); }, Errc::PlanInvalid),
               ContainsSubstring(wrong.expected));
  }
}

TEST_CASE("a list that makes another number of tensors than it was captured with is refused",
          "[executor][wire]") {
  torch::manual_seed(4);
  Whole module;
  module.register_module("part", std::make_shared<torch::nn::LinearImpl>(4, 4));
  module.body = [&](torch::Tensor x) {
    const auto parts = torch::linear(x, module.named_parameters()["part.weight"]).chunk(2, 1);
    return parts[0] * parts[1];
  };
  const Trained t = trained(module, {torch::randn({4, 4})}, {torch::randn({4, 2})});
  for (const int pieces : {4, 1}) {
    RankSetup setup = sent_setups_of(t.program, gpipe(1, kSentMicrobatches)).front();
    bool found = false;
    for (Node& node : own_program(setup.stages).chunks.front().nodes) {
      if (node.name == "aten::split" || node.name == "aten::chunk") {
        auto& count = std::get<c10::IValue>(node.operands[1]);
        count = node.name == "aten::chunk" ? pieces : 4 / pieces;
        found = true;
      }
    }
    REQUIRE(found);
    const EncodedSetup sent = encode(setup);
    const RankSetup got = decode_setup(sent.bytes, sent.tensors);
    StageRuntime runtime(*got.stages[0], got.optimizer);
    SavedStage saved;
    const std::string message = refusal(
        [&] {
          (void)runtime.forward(
              runtime.whole(), {torch::randn({2, 4}), torch::randn({2, 2})}, false, {}, saved);
        },
        Errc::CompileShape);
    CHECK_THAT(message, ContainsSubstring("made 2 tensors when it was captured"));
  }
}

// ---- the corpus of the fuzz target --------------------------------------------------------------

/// If STAGECRAFT_UPDATE_GOLDEN is set in the environment, the test writes the files instead.
TEST_CASE("the corpus of the fuzz target holds a setup of this version", "[executor][wire]") {
  const std::string folder = "fuzz/corpus/setup/";
  if (std::getenv("STAGECRAFT_UPDATE_GOLDEN") != nullptr) {
    const std::string bytes = encode(small_setup()).bytes;
    std::string newer = bytes;
    newer[8] = static_cast<char>(kSetupVersion + 1);
    std::ofstream(folder + "small", std::ios::binary) << bytes;
    std::ofstream(folder + "truncated", std::ios::binary) << bytes.substr(0, bytes.size() / 2);
    std::ofstream(folder + "newer", std::ios::binary) << newer;
    torch::manual_seed(3);
    std::ofstream(folder + "tied", std::ios::binary)
        << encode(sent_setups_of(tied().program, chimera(2, kSentMicrobatches)).front()).bytes;
    std::ofstream(folder + "divided", std::ios::binary)
        << encode(testing::divided_setups().front()).bytes;
    std::ofstream(folder + "copies-of-parts", std::ios::binary)
        << encode(testing::divided_setups(/*copies=*/4).front()).bytes;
  }
  for (const char* name : {"small", "tied", "divided", "copies-of-parts"}) {
    std::ifstream file(folder + name, std::ios::binary);
    const std::string bytes(std::istreambuf_iterator<char>(file), {});
    CHECK(encode(decode_setup(bytes, {})).bytes == bytes);
  }
}

}  // namespace
}  // namespace stagecraft
