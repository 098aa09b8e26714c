/// Tests what capture records, folds, lifts and refuses. Every refusal names the operator and the
/// stage.
#include <ATen/autocast_mode.h>
#include <torch/torch.h>

#include "stagecraft/base/error.h"
#include "stagecraft/compiler/compile.h"
#include "stagecraft/compiler/program/compiled_program.h"
#include "stagecraft/compiler/stage/interpreter.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/modules.h"

namespace stagecraft {
namespace {

using Catch::Matchers::ContainsSubstring;
using testing::mean_square;

/// Makes a function a module, with a weight and a buffer to use.
struct Lambda : torch::nn::Module {
  using Body = std::function<torch::Tensor(Lambda&, torch::Tensor)>;
  Body body;
  torch::Tensor weight, buffer;
  explicit Lambda(Body b) : body(std::move(b)) {
    torch::manual_seed(7);
    weight = register_parameter("weight", torch::randn({4, 4}));
    buffer = register_buffer("buffer", torch::ones({4}));
  }
  torch::Tensor forward(torch::Tensor x) {
    return stage("only", [&] { return body(*this, x); });
  }
};

Program compile_lambda(const Lambda::Body& body) {
  Lambda module(body);
  return compile(module,
                 {.inputs = {torch::randn({4, 4})},
                  .labels = {torch::randn({4, 4})},
                  .loss = mean_square,
                  .microbatches = 2});
}

std::string lambda_refusal(const Lambda::Body& body) {
  try {
    (void)compile_lambda(body);
  } catch (const Error& e) {
    CHECK(family(e.code()) == ErrorFamily::Compile);
    return e.what();
  }
  return "compiled";
}

std::size_t count(const Program& program, std::string_view name) {
  std::size_t n = 0;
  for (const Node& node : program.compiled().graph.nodes) {
    n += node.name == name ? 1 : 0;
  }
  return n;
}

TEST_CASE("an ordinary module is captured and its replay agrees with eager",
          "[compiler][capture]") {
  const Program program = compile_lambda(
      [](Lambda& m, torch::Tensor x) { return torch::matmul(x, m.weight).softmax(-1); });
  CHECK(count(program, "aten::matmul") == 1);
  CHECK(program.compiled().graph.constants.empty());
  CHECK_THAT(program.graph_text(), ContainsSubstring("only") && ContainsSubstring("w:weight"));
}

TEST_CASE("operators on constants alone are folded and lifted by value", "[compiler][capture]") {
  const Program program = compile_lambda([](Lambda& m, torch::Tensor x) {
    const auto mask = torch::ones({2, 4}).tril().mul(2.0) + torch::arange(4);
    return torch::matmul(x, m.weight) * mask;
  });
  CHECK(count(program, "aten::tril") == 0);
  CHECK(count(program, "aten::arange") == 0);
  REQUIRE(program.compiled().graph.constants.size() == 1);
  CHECK(torch::equal(program.compiled().graph.constants[0],
                     torch::ones({2, 4}).tril().mul(2.0) + torch::arange(4)));
}

TEST_CASE("a constant that is written is its own in every run", "[compiler][capture]") {
  const Program program = compile_lambda([](Lambda& m, torch::Tensor x) {
    auto padded = torch::zeros({2, 6});
    padded.slice(1, 1, 5).copy_(torch::matmul(x, m.weight));
    return padded.slice(1, 0, 4) + padded.slice(1, 2, 6);
  });
  CHECK(count(program, "aten::copy_") == 1);
  CHECK(count(program, "aten::clone") == 1);
}

TEST_CASE("an outside tensor without a gradient is lifted, one with a gradient is refused",
          "[compiler][capture]") {
  const auto outside = torch::randn({4});
  const Program program = compile_lambda(
      [&](Lambda& m, torch::Tensor x) { return torch::matmul(x, m.weight) + outside; });
  REQUIRE(program.compiled().graph.constants.size() == 1);
  CHECK(torch::equal(program.compiled().graph.constants[0], outside));

  const auto trainable = torch::randn({4}, torch::requires_grad());
  CHECK_THAT(lambda_refusal([&](Lambda& m, torch::Tensor x) {
               return torch::matmul(x, m.weight) + trainable;
             }),
             ContainsSubstring("requires a gradient") && ContainsSubstring("only"));
}

TEST_CASE("reads of values that depend on the input are refused", "[compiler][capture]") {
  CHECK_THAT(lambda_refusal([](Lambda& m, torch::Tensor x) {
               return torch::matmul(x, m.weight) * x.sum().item<float>();
             }),
             ContainsSubstring("item") && ContainsSubstring("\"only\""));
  CHECK_THAT(lambda_refusal([](Lambda& m, torch::Tensor x) {
               return (x.sum() > 0).is_nonzero() ? torch::matmul(x, m.weight) : x + m.weight.sum();
             }),
             ContainsSubstring("is_nonzero") && ContainsSubstring("\"only\""));
  CHECK_THAT(lambda_refusal([](Lambda& m, torch::Tensor x) {
               return torch::allclose(x, x) ? torch::matmul(x, m.weight) : x;
             }),
             ContainsSubstring("allclose"));
}

TEST_CASE("shapes that depend on values are refused, fixed ones are not", "[compiler][capture]") {
  CHECK_THAT(lambda_refusal([](Lambda& m, torch::Tensor x) {
               const auto h = torch::matmul(x, m.weight);
               return h + h.masked_select(h > 0).sum();
             }),
             ContainsSubstring("masked_select") && ContainsSubstring("\"only\""));
  CHECK_THAT(lambda_refusal([](Lambda& m, torch::Tensor x) {
               const auto h = torch::matmul(x, m.weight);
               return h + h.index({h > 0}).sum();
             }),
             ContainsSubstring("aten::index"));
  const Program program = compile_lambda([](Lambda& m, torch::Tensor x) {
    return torch::matmul(x, m.weight)
        .index({torch::indexing::Slice(), torch::tensor({3, 2, 1, 0})});
  });
  CHECK(count(program, "aten::index") == 1);
}

TEST_CASE("a buffer that nothing writes may decide", "[compiler][capture]") {
  using torch::indexing::Slice;
  const Program program = compile_lambda([](Lambda& m, torch::Tensor x) {
    const auto h = torch::matmul(x, m.weight) * m.buffer.sum().item<float>();
    const auto mask = m.buffer > 0;
    const auto columns = torch::nonzero(m.buffer).flatten();
    return h.index({Slice(), mask}) + h.index_select(1, columns) +
           h.masked_select(mask.expand({h.size(0), 4})).view_as(h) +
           torch::repeat_interleave(
               h.slice(1, 0, 4, 2), m.buffer.slice(0, 0, 2).to(torch::kLong) * 2, 1);
  });
  CHECK(count(program, "aten::index") == 1);
  CHECK(count(program, "aten::nonzero") == 1);
  CHECK(count(program, "aten::masked_select") == 1);
  CHECK(count(program, "aten::item") == 0);
  const auto select = [](const torch::Tensor& x, const torch::Tensor& mask) {
    return x.index({Slice(), mask});
  };
  CHECK_THAT(lambda_refusal([](Lambda& m, torch::Tensor x) {
               const auto times = (x.select(0, 0) > -100).to(torch::kLong);
               return torch::repeat_interleave(torch::matmul(x, m.weight), times, 1);
             }),
             ContainsSubstring("aten::repeat_interleave"));
  CHECK_THAT(lambda_refusal([&](Lambda& m, torch::Tensor x) {
               const auto h = select(torch::matmul(x, m.weight), m.buffer > 0);
               m.buffer.mul_(2);
               return h;
             }),
             ContainsSubstring("buffer") && ContainsSubstring("decides a shape"));
  CHECK_THAT(lambda_refusal([&](Lambda& m, torch::Tensor x) {
               m.buffer.mul_(2);
               return select(torch::matmul(x, m.weight), m.buffer > 0);
             }),
             ContainsSubstring("aten::index"));
  CHECK_THAT(lambda_refusal([&](Lambda& m, torch::Tensor x) {
               return select(torch::matmul(x, m.weight), torch::rand({4}) > 0.5);
             }),
             ContainsSubstring("aten::index"));
}

TEST_CASE("reads that no operator shows differ on a second microbatch", "[compiler][capture]") {
  CHECK_THAT(lambda_refusal([](Lambda& m, torch::Tensor x) {
               const auto factor = x.accessor<float, 2>()[0][0];
               return torch::matmul(x, m.weight) * factor;
             }),
             ContainsSubstring("second microbatch"));
}

TEST_CASE("a module whose answer depends on how often it was called is refused",
          "[compiler][capture]") {
  for (const int call : {2, 3, 4}) {
    CAPTURE(call);
    const std::string message = lambda_refusal([call, n = 0](Lambda& m, torch::Tensor x) mutable {
      const double factor = ++n >= call ? 2.0 : 1.0;
      return torch::matmul(x, m.weight) * factor;
    });
    CHECK_THAT(message,
               ContainsSubstring(call == 3 ? "how often the module was called"
                                           : "state outside of registered buffers"));
  }
}

/// Uses one weight twice.
struct UsedTwice : torch::nn::Module {
  torch::Tensor weight{register_parameter("weight", torch::randn({6, 6}))};
  torch::Tensor forward(const torch::Tensor& x) {
    return torch::matmul(torch::tanh(torch::matmul(x, weight)), weight);
  }
};

TEST_CASE("autocast with its cache on, as it is by default, takes a weight that is used twice",
          "[compiler][capture]") {
  UsedTwice module;
  at::autocast::set_autocast_enabled(at::kCPU, true);
  at::autocast::set_autocast_dtype(at::kCPU, at::kBFloat16);
  REQUIRE(at::autocast::is_autocast_cache_enabled());
  const auto x = torch::randn({4, 6});
  std::string failure;
  try {
    const Program program =
        compile(module,
                {.inputs = {x},
                 .loss = [](const torch::Tensor& y) { return y.to(torch::kFloat).square().mean(); },
                 .microbatches = 2});
    CHECK(count(program, "aten::matmul") == 2);
  } catch (const Error& error) {
    failure = error.message();
  }
  CHECK(failure.empty());
  CHECK(at::autocast::is_autocast_cache_enabled());
  at::autocast::clear_cache();
  at::autocast::set_autocast_enabled(at::kCPU, false);
}

TEST_CASE(
    "two results of arithmetic may be compared as long as the answer stays the one of capture",
    "[compiler][capture]") {
  const auto compares = [](Lambda& m, torch::Tensor x) {
    const auto h = torch::matmul(x, m.weight);
    return torch::equal(h, h) && !torch::equal(h, x) ? h : h + 1;
  };
  const Program program = compile_lambda(compares);
  CHECK(count(program, "aten::equal") == 1);  // comparing a tensor with itself is constant
  CHECK_THAT(program.graph_text(), ContainsSubstring("false = aten::equal"));

  // x = 0 makes both tensors 0.
  const CompiledProgram& compiled = program.compiled();
  const StageProgram& stage = compiled.partition.stages[0];
  const ChunkInterpreter interpreter(stage, stage.chunks.front());
  const StageState state{.parameters = {compiled.graph.parameters[0].tensor}, .buffers = {}};
  const auto run = [&](const torch::Tensor& x) { return interpreter.run({x, x}, state, {}); };
  CHECK_NOTHROW(run(torch::randn({2, 4})));
  CHECK_THROWS_WITH(
      run(torch::zeros({2, 4})),
      ContainsSubstring("aten::equal in stage \"only\"") && ContainsSubstring("are equal now"));

  CHECK_THAT(
      lambda_refusal([](Lambda& m, torch::Tensor x) {
        const auto h = torch::matmul(x, m.weight);
        return torch::equal(h, h * 1) ? h : x;
      }),
      ContainsSubstring("finds two different tensors equal") && ContainsSubstring("\"only\""));
  CHECK_THAT(lambda_refusal([](Lambda& m, torch::Tensor x) {
               const auto h = torch::matmul(x, m.weight);
               return torch::equal(h.to(torch::kLong), x.to(torch::kLong)) ? h : h + 1;
             }),
             ContainsSubstring("aten::equal reads a value"));
}

TEST_CASE("values made without gradients stay allowed", "[compiler][capture]") {
  const Program program = compile_lambda([](Lambda& m, torch::Tensor x) {
    torch::Tensor scale;
    {
      const torch::NoGradGuard no_grad;
      scale = torch::matmul(x, m.weight).abs().mean();
    }
    return torch::matmul(x, m.weight) / (scale + 1);
  });
  const auto& nodes = program.compiled().graph.nodes;
  CHECK(std::ranges::count_if(nodes, [](const Node& n) { return !n.grad_mode; }) == 3);
}

TEST_CASE("dropout draws by operator, step and microbatch, and is checked against eager",
          "[compiler][capture][random]") {
  const Program program = compile_lambda([](Lambda& m, torch::Tensor x) {
    return torch::dropout(torch::matmul(x, m.weight), 0.5, true) + torch::dropout(x, 0.0, true);
  });
  CHECK(count(program, "aten::bernoulli_") == 1);
  CHECK(count(program, "aten::dropout") == 1);  // p = 0 draws nothing and is kept whole
  CHECK(random_seed({1, 2, 3}, 0) != random_seed({1, 2, 3}, 1));
  CHECK(random_seed({1, 2, 3}, 0) != random_seed({1, 2, 4}, 0));
  CHECK(random_seed({1, 2, 3}, 0) != random_seed({1, 3, 3}, 0));
}

TEST_CASE("multinomial draws by operator, step and microbatch, and every replay checks its values",
          "[compiler][capture][random]") {
  const Program program = compile_lambda([](Lambda& m, torch::Tensor x) {
    const auto h = torch::matmul(x, m.weight);
    const auto weights = h.softmax(-1) + m.buffer;
    const auto drawn = torch::cat({torch::multinomial(weights, 1),
                                   torch::multinomial(weights, 3),
                                   torch::multinomial(weights, 16, /*replacement=*/true)},
                                  1);
    return h.gather(1, drawn).view({-1, 5, 4}).sum(1);
  });
  CHECK(count(program, "aten::multinomial") == 3);

  const CompiledProgram& compiled = program.compiled();
  const StageProgram& stage = compiled.partition.stages[0];
  const ChunkInterpreter interpreter(stage, stage.chunks.front());
  const auto x = torch::linspace(-1, 1, 8).view({2, 4});
  const auto loss_of = [&](const RandomKey& key, double added) {
    const StageState state{.parameters = {compiled.graph.parameters[0].tensor},
                           .buffers = {torch::full({4}, added)}};
    return interpreter.run({x, x}, state, key).loss.item<float>();
  };
  const float first = loss_of({1, 2, 3}, 1.0);
  CHECK(loss_of({1, 2, 3}, 1.0) == first);
  CHECK(loss_of({2, 2, 3}, 1.0) != first);
  CHECK(loss_of({1, 3, 3}, 1.0) != first);
  CHECK(loss_of({1, 2, 4}, 1.0) != first);
  CHECK_THROWS_WITH(loss_of({1, 2, 3}, -2.0), ContainsSubstring("element < 0"));
}

TEST_CASE("capture leaves buffers and the random state as they were", "[compiler][capture]") {
  struct Norm : torch::nn::Module {
    torch::nn::BatchNorm1d norm{nullptr};
    Norm() { norm = register_module("norm", torch::nn::BatchNorm1d(4)); }
    torch::Tensor forward(torch::Tensor x) { return norm(x + torch::rand({4})); }
  } module;
  torch::manual_seed(3);
  const auto before = torch::rand({2});
  torch::manual_seed(3);
  const auto x = torch::linspace(0, 1, 32).view({8, 4});
  const Program program =
      compile(module, {.inputs = {x}, .labels = {x}, .loss = mean_square, .microbatches = 2});
  CHECK(torch::equal(torch::rand({2}), before));
  CHECK(torch::equal(module.norm->running_mean, torch::zeros({4})));
  CHECK(module.norm->num_batches_tracked.item<std::int64_t>() == 0);
}

TEST_CASE("autocast is recorded per operator and replayed", "[compiler][capture][autocast]") {
  const Program program = compile_lambda([](Lambda& m, torch::Tensor x) {
    at::autocast::set_autocast_dtype(at::kCPU, at::kBFloat16);
    at::autocast::set_autocast_enabled(at::kCPU, true);
    const auto h = torch::matmul(x, m.weight);
    at::autocast::set_autocast_enabled(at::kCPU, false);
    return h.to(torch::kFloat);
  });
  const auto& nodes = program.compiled().graph.nodes;
  const auto product =
      std::ranges::find_if(nodes, [](const Node& n) { return n.name == "aten::matmul"; });
  REQUIRE(product != nodes.end());
  CHECK(product->autocast.enabled);
  CHECK(program.compiled().graph.at(product->results[0]).dtype == at::kBFloat16);
}

TEST_CASE("an explicit foreign device is refused", "[compiler][capture]") {
  CHECK_THAT(lambda_refusal([](Lambda& m, torch::Tensor x) {
               return torch::matmul(x, m.weight).to(torch::kMeta).sum() + x;
             }),
             ContainsSubstring("meta") && ContainsSubstring("\"only\""));
}

TEST_CASE("writing a parameter is refused; .data() is recorded as the detach it is",
          "[compiler][capture]") {
  CHECK_THAT(lambda_refusal([](Lambda& m, torch::Tensor x) {
               const torch::NoGradGuard no_grad;
               m.weight.mul_(0.5);
               return x + m.weight.sum();
             }),
             ContainsSubstring("writes the parameter"));
  const Program program = compile_lambda([](Lambda& m, torch::Tensor x) {
    return torch::matmul(x, m.weight) + m.weight.data().sum();
  });
  CHECK(count(program, "aten::detach") == 1);
}

TEST_CASE("writing a parameter's memory through another tensor is refused before it happens",
          "[compiler][capture]") {
  const auto [how, write] = GENERATE(table<const char*, std::function<void(torch::Tensor&)>>({
      {"select", [](torch::Tensor& weight) { weight[1].zero_(); }},
      {"detach", [](torch::Tensor& weight) { weight.detach().clamp_(0, 0); }},
      {"data", [](torch::Tensor& weight) { weight.data().mul_(0); }},
      {"data of a view", [](torch::Tensor& weight) { weight.t().data()[1].zero_(); }},
  }));
  CAPTURE(how);
  Lambda module([&](Lambda& m, torch::Tensor x) {
    const torch::NoGradGuard no_grad;
    write(m.weight);
    return x + m.weight.sum();
  });
  const auto before = module.weight.clone();
  const auto x = torch::randn({4, 4});
  CHECK_THROWS_WITH(
      (void)compile(module, {.inputs = {x}, .labels = {x}, .loss = mean_square, .microbatches = 2}),
      ContainsSubstring(
          "writes the parameter w:weight (through a view, detach() or data() of it)") &&
          ContainsSubstring("(in stage \"only\")") && ContainsSubstring("write a clone() of it"));
  CHECK(torch::equal(module.weight, before));
}

TEST_CASE("a buffer that lies beside a parameter in one flat tensor may be written",
          "[compiler][capture]") {
  struct Flat : torch::nn::Module {
    torch::Tensor flat = torch::ones({4, 2});
    torch::Tensor weight{
        register_parameter("weight", flat.select(1, 0).detach())};  // every other element
    torch::Tensor seen{register_buffer("seen", flat.select(1, 1))};
    torch::Tensor forward(torch::Tensor x) {
      seen.add_(1);
      return x * weight;
    }
  } module;
  const auto x = torch::randn({4, 4});
  const Program program =
      compile(module, {.inputs = {x}, .labels = {x}, .loss = mean_square, .microbatches = 2});
  CHECK(count(program, "aten::add_") == 1);
}

TEST_CASE("a loss that is no scalar, or depends on nothing, is refused", "[compiler][capture]") {
  testing::Chain module(1);
  const auto x = torch::randn({4, 8});
  const auto with_loss = [&](Loss loss) {
    return [&module, x, loss] {
      (void)compile(module, {.inputs = {x}, .labels = {x}, .loss = loss, .microbatches = 2});
    };
  };
  CHECK_THROWS_WITH(with_loss([](torch::Tensor o, torch::Tensor) { return o; })(),
                    ContainsSubstring("one floating-point number"));
  CHECK_THROWS_WITH(with_loss([](torch::Tensor, torch::Tensor) { return torch::ones({}); })(),
                    ContainsSubstring("does not depend"));
  CHECK_THROWS_WITH(with_loss({})(), ContainsSubstring("loss is missing"));
}

TEST_CASE("compile finds gradients that no optimizer takes", "[compiler][capture]") {
  struct Sparse : torch::nn::Module {
    torch::nn::Embedding table{nullptr};
    Sparse() {
      table = register_module("table",
                              torch::nn::Embedding(torch::nn::EmbeddingOptions(5, 4).sparse(true)));
    }
    torch::Tensor forward(torch::Tensor x) { return table(x); }
  } sparse;
  const auto tokens = torch::arange(4);
  CHECK_THROWS_WITH((void)compile(sparse,
                                  {.inputs = {tokens},
                                   .labels = {torch::zeros({4, 4})},
                                   .loss = mean_square,
                                   .microbatches = 2}),
                    ContainsSubstring("the gradient of table.weight is sparse"));
  struct Complex : torch::nn::Module {
    torch::Tensor z;
    Complex() { z = register_parameter("z", torch::ones({4}, torch::kComplexFloat)); }
    torch::Tensor forward(torch::Tensor x) { return torch::abs(z * x); }
  } complex;
  const auto x = torch::randn({4, 4});
  CHECK_THROWS_WITH(
      (void)compile(complex,
                    {.inputs = {x}, .labels = {x}, .loss = mean_square, .microbatches = 2}),
      ContainsSubstring("the parameter z is complex64"));
}

/// Uses bags of embeddings: the offsets are legal only in their own order, and begin with 0 in
/// every microbatch.
struct Bags : torch::nn::Module {
  torch::nn::EmbeddingBag bag{register_module("bag", torch::nn::EmbeddingBag(10, 4))};
  torch::Tensor forward(torch::Tensor tokens, torch::Tensor offsets) {
    return bag(tokens, offsets);
  }
};

TEST_CASE("inputs that are legal only in their own order are accepted", "[compiler][capture]") {
  const int microbatches = GENERATE(1, 2);
  Bags module;
  const auto tokens = torch::tensor({1, 2, 3, 4, 5, 6, 7, 8});
  const auto offsets =
      microbatches == 1 ? torch::tensor({0, 2, 5, 7}) : torch::tensor({0, 3, 0, 1});
  const auto y = torch::randn({4, 4});
  CHECK_THROWS(module.forward(tokens, offsets.flip(0)));
  const Program program = compile(module,
                                  {.inputs = {tokens, offsets},
                                   .labels = {y},
                                   .loss = mean_square,
                                   .microbatches = microbatches});
  CHECK(count(program, "aten::embedding_bag") == 1);
}

TEST_CASE(
    "a module that throws on the last microbatch in its own order is refused with the message",
    "[compiler][capture]") {
  Bags module;
  const auto tokens = torch::tensor({1, 2, 3, 4, 5, 6, 7, 8});
  const auto y = torch::randn({4, 4});
  CHECK_THROWS_WITH(
      (void)compile(module,
                    {.inputs = {tokens, torch::tensor({0, 3, 4, 6})},
                     .labels = {y},
                     .loss = mean_square,
                     .microbatches = 2}),
      ContainsSubstring("the module's forward failed") && ContainsSubstring("offsets"));
}

TEST_CASE("a replicated tensor goes whole to every microbatch", "[compiler]") {
  struct Shifted : torch::nn::Module {
    torch::nn::Linear l{nullptr};
    Shifted() { l = register_module("l", torch::nn::Linear(8, 8)); }
    torch::Tensor forward(torch::Tensor x, torch::Tensor shift) { return l(x) + shift; }
  } module;
  const auto x = torch::randn({4, 8});
  const Program program = compile(module,
                                  {.inputs = {x, replicated(torch::randn({8}))},
                                   .labels = {x},
                                   .loss = mean_square,
                                   .microbatches = 2});
  CHECK(program.compiled().inputs[1].replicated);
  CHECK((program.compiled().inputs[0].sizes == std::vector<std::int64_t>{2, 8}));
}

}  // namespace
}  // namespace stagecraft
