/// Tests what a program owns, which tensors it cannot be made of, and which parts it recomputes.
#include "stagecraft/compiler/program/program.h"

#include <torch/torch.h>

#include "stagecraft/base/error.h"
#include "stagecraft/compiler/compile.h"
#include "stagecraft/compiler/program/compiled_program.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/modules.h"

namespace stagecraft {
namespace {

using Catch::Matchers::ContainsSubstring;
using testing::mean_square;

/// Has weights that are trained, frozen and tied; statistics; dropout; and a constant that is not
/// registered.
struct ProgramNet : torch::nn::Module {
  torch::nn::Linear in{register_module("in", torch::nn::Linear(4, 4))};
  torch::nn::BatchNorm1d norm{register_module("norm", torch::nn::BatchNorm1d(4))};
  torch::Tensor tied{register_parameter("tied", in->weight)};
  torch::nn::Linear frozen{register_module("frozen", torch::nn::Linear(4, 4))};
  torch::Tensor constant = torch::ones({4});

  ProgramNet() { frozen->weight.requires_grad_(false); }
  torch::Tensor forward(torch::Tensor x) {
    const auto h = stage("first", [&] {
      return torch::linear(torch::dropout(norm(in(x)), 0.5, is_training()), tied);
    });
    return stage("second", [&] { return frozen(h) * constant; });
  }
};

torch::Tensor batch() {
  torch::manual_seed(11);
  return torch::randn({8, 4});
}

template <class Module>
Program compile_on(Module& module, const Batch& inputs, const Batch& labels) {
  return compile(module,
                 {.inputs = inputs, .labels = labels, .loss = mean_square, .microbatches = 2});
}

std::vector<torch::Tensor> values_of(const std::vector<NamedTensor>& tensors) {
  std::vector<torch::Tensor> values;
  for (const NamedTensor& t : tensors) {
    values.push_back(t.tensor.clone());
  }
  return values;
}

bool equal(const std::vector<torch::Tensor>& a, const std::vector<torch::Tensor>& b) {
  return std::ranges::equal(a, b, [](const auto& x, const auto& y) {
    return x.dtype() == y.dtype() && torch::equal(x, y);
  });
}

TEST_CASE("PR-1: later changes of the module do not change the program", "[compiler][program]") {
  ProgramNet net;
  const auto x = batch();
  const Program program = compile_on(net, {x}, {x});
  const Graph& graph = program.compiled().graph;
  const auto parameters = values_of(graph.parameters);
  const auto buffers = values_of(graph.buffers);
  CHECK(torch::equal(parameters[0], net.named_parameters()["tied"]));
  {
    const torch::NoGradGuard no_grad;
    for (auto& p : net.parameters()) {
      p.zero_();
    }
    for (auto& b : net.buffers()) {
      b.fill_(7);
    }
    net.constant.fill_(7);
  }
  net.to(torch::kDouble);
  CHECK(equal(values_of(graph.parameters), parameters));
  CHECK(equal(values_of(graph.buffers), buffers));
  REQUIRE(graph.constants.size() == 1);
  CHECK(torch::equal(graph.constants[0], torch::ones({4})));
}

TEST_CASE("PR-1: the program has one copy of each parameter, which trains if the module's does",
          "[compiler][program]") {
  ProgramNet net;
  const auto x = batch();
  const Program program = compile_on(net, {x}, {x});
  const auto named = net.named_parameters();
  CHECK(named.size() == 7);  // the tied one counts with both names
  CHECK(program.parameter_names().size() == 6);
  std::set<const void*> memory;
  for (const NamedTensor& p : program.compiled().graph.parameters) {
    const torch::Tensor& original = named[p.name];
    CHECK(p.tensor.is_leaf());
    CHECK(p.tensor.requires_grad() == original.requires_grad());
    CHECK(p.tensor.strides() == original.strides());
    CHECK_FALSE(p.tensor.is_alias_of(original));
    CHECK(p.tensor.storage().nbytes() == p.tensor.nbytes());
    CHECK(memory.insert(p.tensor.data_ptr()).second);
  }
}

TEST_CASE("PR-2: a program that was moved from is still one", "[compiler][program]") {
  ProgramNet net;
  const auto x = batch();
  Program program = compile_on(net, {x}, {x});
  const Program moved = std::move(program);
  CHECK(program.microbatches() ==
        moved.microbatches());  // NOLINT(bugprone-use-after-move): this is what the test tests
  CHECK(program.shared() == moved.shared());
  CHECK_THROWS_WITH(Program(nullptr), ContainsSubstring("sc::compile"));
}

TEST_CASE("an example batch that no stage could compute with is refused", "[compiler][program]") {
  ProgramNet net;
  const auto x = batch();
  CHECK_THROWS_WITH(compile_on(net, {x.to_sparse()}, {x}), ContainsSubstring("input tensor 0 is"));
  CHECK_THROWS_WITH(compile_on(net, {x}, {x.to_sparse()}), ContainsSubstring("label tensor 0 is"));
}

TEST_CASE("a module with a parameter or buffer that no worker could compute with is refused",
          "[compiler][program]") {
  struct Holder : torch::nn::Module {
    torch::Tensor forward(torch::Tensor x) { return x; }
  };
  const auto x = batch();
  Holder with_parameter;
  with_parameter.register_parameter("p", torch::ones({4}, torch::kMeta));
  CHECK_THROWS_WITH(compile_on(with_parameter, {x}, {x}),
                    ContainsSubstring("the parameter p is on the device meta"));
  Holder with_buffer;
  with_buffer.register_buffer("b", torch::eye(4).to_sparse());
  CHECK_THROWS_WITH(compile_on(with_buffer, {x}, {x}),
                    ContainsSubstring("the buffer b is of layout Sparse"));
}

/// Has two layers and a buffer, which a test puts into common memory.
struct Pair : torch::nn::Module {
  torch::nn::Linear a{register_module("a", torch::nn::Linear(4, 4))};
  torch::nn::Linear b{register_module("b", torch::nn::Linear(4, 4))};
  torch::Tensor buffer{register_buffer("buffer", torch::ones({4}))};
  torch::Tensor forward(torch::Tensor x) { return b(a(x)) * buffer; }
};

TEST_CASE("two registered tensors that share memory are refused, naming both",
          "[compiler][program]") {
  using Names = std::pair<const char*, const char*>;
  const auto [names, share] = GENERATE(table<Names, std::function<void(Pair&)>>({
      {{"parameter a.weight", "parameter b.weight"},
       [](Pair& p) { p.b->weight.set_data(p.a->weight); }},
      {{"parameter a.weight", "parameter b.bias"},
       [](Pair& p) { p.b->bias.set_data(p.a->weight.detach().select(1, 2)); }},
      {{"parameter a.weight", "parameter copy"},
       [](Pair& p) { p.register_parameter("copy", p.a->weight.detach()); }},
      {{"parameter a.weight", "buffer seen"},
       [](Pair& p) { p.register_buffer("seen", p.a->weight.detach()[1]); }},
      {{"buffer buffer", "buffer seen"},
       [](Pair& p) { p.register_buffer("seen", p.buffer.view({2, 2})); }},
  }));
  CAPTURE(names.first, names.second);
  Pair pair;
  share(pair);
  const auto x = batch();
  CHECK_THROWS_WITH(compile_on(pair, {x}, {x}),
                    ContainsSubstring(std::string("the ") + names.first) &&
                        ContainsSubstring(std::string("the ") + names.second) &&
                        ContainsSubstring("register the same tensor twice"));
}

TEST_CASE("views of one flat tensor that have no element in common are parameters like any other",
          "[compiler][program]") {
  const auto flat = torch::rand({4, 12});
  Pair pair;
  pair.a->weight.set_data(flat.narrow(1, 0, 4));
  pair.b->weight.set_data(flat.narrow(1, 4, 4).t());
  pair.a->bias.set_data(flat.select(1, 8));
  pair.b->bias.set_data(flat.select(1, 9));
  pair.buffer.set_data(flat.select(1, 10));
  const auto x = batch();
  const Program program = compile_on(pair, {x}, {x});
  CHECK(program.parameter_names().size() == 4);
  CHECK(torch::equal(program.compiled().graph.parameters[2].tensor, flat.narrow(1, 4, 4).t()));
}

/// Has three stages: one that does not train, one with paths of parameters, one with a marked
/// region.
struct Deep : torch::nn::Module {
  torch::nn::Linear frozen{register_module("frozen", torch::nn::Linear(4, 4))};
  torch::nn::Sequential layers{register_module(
      "layers",
      torch::nn::Sequential(torch::nn::Linear(4, 4), torch::nn::Tanh(), torch::nn::Linear(4, 4)))};
  torch::nn::Linear head{register_module("head", torch::nn::Linear(4, 4))};
  Deep() {
    for (auto& p : frozen->parameters()) {
      p.requires_grad_(false);
    }
  }
  torch::Tensor forward(torch::Tensor x) {
    const auto a = stage("base", [&] { return torch::tanh(frozen(x)); });
    const auto b = stage("middle", [&] { return torch::gelu(layers->forward(a)); });
    return stage("top", [&] { return head(recompute("act", [&] { return torch::gelu(b) * b; })); });
  }
};

TEST_CASE("recomputed parts are chosen by stage, region or path, and keep less",
          "[compiler][program][recompute]") {
  const auto x = batch();
  const auto compiled = [&](const Recompute& recompute) {
    Deep module;
    return compile(module,
                   {.inputs = {x},
                    .labels = {x},
                    .loss = mean_square,
                    .microbatches = 2,
                    .recompute = recompute});
  };
  const auto operators = [](const Program& program, std::size_t stage) {
    std::vector<std::size_t> counts;  // of the chunks that are recomputed
    for (const Chunk& chunk : program.compiled().partition.stages[stage].chunks) {
      if (chunk.recompute) {
        counts.push_back(chunk.nodes.size());
      }
    }
    return counts;
  };
  using Counts = std::vector<std::size_t>;
  const Program plain = compiled(Recompute::nothing());
  const auto saved = [](const Program& program, std::size_t stage) {
    return program.compiled().partition.stages[stage].saved_bytes;
  };
  for (std::size_t s = 0; s < 3; ++s) {
    CHECK(operators(plain, s).empty());
  }
  const Program marked = compiled({});
  CHECK(operators(marked, 2) == Counts{2});
  CHECK(marked.compiled().partition.stages[2].replayed_bytes() > 0);
  CHECK(operators(marked, 1).empty());
  CHECK_THAT(marked.explain(), ContainsSubstring(", recomputes ") && ContainsSubstring("1 part"));
  const Program stages = compiled(Recompute::stages());
  CHECK(operators(stages, 0).empty());  // it has no backward and keeps nothing
  CHECK(operators(stages, 1).size() == 1);
  CHECK(stages.compiled().partition.stages[1].replayed_bytes() > 0);
  CHECK(saved(stages, 1) < saved(plain, 1));
  CHECK(saved(stages, 1) >= 4 * 4 * 4);  // its input
  const Program path = compiled(Recompute::named({"layers.2", "middle"}));
  CHECK(operators(path, 1) == operators(stages, 1));  // one lies inside the other
  // Recomputing a linear layer alone saves nothing, because it would have to keep the layer's input
  // and weight.
  const Program linear = compiled(Recompute::named({"layers.2", "layers.0"}));
  CHECK(operators(linear, 1).size() == 2);
  CHECK(linear.compiled().partition.stages[1].replayed_bytes() == 0);
  CHECK(operators(compiled(Recompute::named({"layers", "act"})), 2) == Counts{2});

  const auto refusal = [&](const Recompute& recompute) {
    try {
      (void)compiled(recompute);
    } catch (const Error& error) {
      CHECK(error.code() == Errc::UsageArgument);
      return error.message();
    }
    return std::string("accepted");
  };
  CHECK_THAT(refusal(Recompute::named({"layer.2"})),
             ContainsSubstring("\"layer.2\": did you mean layers.2? the stages are base, "
                               "middle, top; the marked regions act; the paths of parameters "
                               "frozen, layers, layers.0, layers.2, head"));
  CHECK_THAT(
      refusal(Recompute::named({"act", "frozen"})),
      ContainsSubstring("nothing to recompute in \"frozen\"") && ContainsSubstring("no backward"));
  CHECK_THAT(refusal(Recompute::named({})), ContainsSubstring("has no names"));
  CHECK(parse_recompute("none") == Recompute::nothing());
  CHECK(parse_recompute("stage") == Recompute::stages());
  CHECK(parse_recompute("a,layers.2") == Recompute::named({"a", "layers.2"}));
  CHECK_THROWS_WITH(parse_recompute("a,"), ContainsSubstring("found 'a,'"));
}

}  // namespace
}  // namespace stagecraft
