/// Tests the forms in which a module may come, what its forward may take and return, what compile
/// refuses, and what it leaves as it was.
#include "stagecraft/compiler/compile.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <memory>
#include <optional>

#include <torch/torch.h>

#include "stagecraft/base/error.h"
#include "stagecraft/compiler/program/compiled_program.h"
#include "stagecraft/compiler/shapes/parts.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/modules.h"
#include "stagecraft/tests/support/refusal.h"

namespace stagecraft {
namespace {

using Catch::Matchers::ContainsSubstring;
using testing::mean_square;

torch::Tensor ordered_rows(std::int64_t width = 3) {
  torch::manual_seed(5);
  return torch::randn({4, width});
}

/// Has a linear layer from three to three, which each module below uses.
struct Layer : torch::nn::Module {
  torch::nn::Linear linear{register_module("linear", torch::nn::Linear(3, 3))};
};

/// Returns a loss that depends on all outputs, so that each must have been found.
torch::Tensor sum_of_all(const std::vector<torch::Tensor>& outputs,
                         const std::vector<torch::Tensor>&) {
  torch::Tensor sum = outputs.at(0).sum();
  for (std::size_t i = 1; i < outputs.size(); ++i) {
    sum = sum + static_cast<double>(i + 1) * outputs[i].sum();
  }
  return sum;
}

/// Compiles with `inputs` tensors and returns the number of outputs.
template <class Module>
std::size_t outputs_of(Module&& module, std::size_t inputs = 1) {
  Batch batch;
  for (std::size_t i = 0; i < inputs; ++i) {
    batch.emplace_back(ordered_rows() + static_cast<double>(i));
  }
  const Program program = compile(module, {.inputs = batch, .loss = sum_of_all, .microbatches = 2});
  CHECK_FALSE(program.parameter_names().empty());
  return program.compiled().graph.outputs.size();
}

// ---- holders of the module ----------------------------------------------------------------------

struct NetImpl : Layer {
  torch::Tensor forward(torch::Tensor x) { return linear(x); }
};
TORCH_MODULE(Net);

TEST_CASE("a module may come as itself, in a holder, by pointer, in AnyModule, or as a temporary",
          "[compiler][forms]") {
  NetImpl net;
  Net holder;
  const Net const_holder;
  const auto shared = std::make_shared<NetImpl>();
  auto unique = std::make_unique<NetImpl>();
  torch::nn::AnyModule any(holder);
  CHECK(outputs_of(net) == 1);
  CHECK(outputs_of(&net) == 1);
  CHECK(outputs_of(holder) == 1);
  CHECK(outputs_of(const_holder) == 1);
  CHECK(outputs_of(shared) == 1);
  CHECK(outputs_of(unique) == 1);
  CHECK(outputs_of(any) == 1);
  CHECK(outputs_of(Net()) == 1);
  CHECK(outputs_of(std::make_unique<NetImpl>()) == 1);
  CHECK(outputs_of(torch::nn::Linear(3, 2)) == 1);
}

TEST_CASE("a Sequential is a module, with as many inputs as its first part takes",
          "[compiler][forms]") {
  torch::nn::Sequential chain(torch::nn::Linear(3, 8), torch::nn::ReLU(), torch::nn::Linear(8, 2));
  CHECK(outputs_of(chain) == 1);
  CHECK(outputs_of(*chain) == 1);
  torch::nn::Sequential pair(torch::nn::Bilinear(3, 3, 2), torch::nn::Tanh());
  CHECK(outputs_of(pair, 2) == 1);
  CHECK_THAT(refusal([&] { outputs_of(pair, 1); }, Errc::CompileCapture),
             ContainsSubstring("expects 2 argument"));
}

TEST_CASE("a module that is not there is refused", "[compiler][forms]") {
  CHECK_THAT(refusal([] { outputs_of(std::shared_ptr<NetImpl>()); }),
             ContainsSubstring("null pointer"));
  CHECK_THAT(refusal([] { outputs_of(std::unique_ptr<NetImpl>()); }),
             ContainsSubstring("null pointer"));
  CHECK_THAT(refusal([] { outputs_of(static_cast<NetImpl*>(nullptr)); }),
             ContainsSubstring("null pointer"));
  CHECK_THAT(refusal([] { outputs_of(Net(nullptr)); }), ContainsSubstring("empty module holder"));
  CHECK_THAT(refusal([] { outputs_of(torch::nn::AnyModule()); }),
             ContainsSubstring("empty module holder"));
}

// ---- parameters of forward ----------------------------------------------------------------------

template <class Signature>
struct Takes;
template <class... A>
struct Takes<torch::Tensor(A...)> : Layer {
  torch::Tensor forward(A... x) { return linear((torch::Tensor(x) + ...)); }
};

TEMPLATE_TEST_CASE("forward may take its tensors in every way",
                   "[compiler][forms]",
                   torch::Tensor(torch::Tensor),
                   torch::Tensor(torch::Tensor&),
                   torch::Tensor(const torch::Tensor&),
                   torch::Tensor(torch::Tensor&&)) {
  CHECK(outputs_of(Takes<TestType>()) == 1);
}

TEMPLATE_TEST_CASE("forward may take several tensors",
                   "[compiler][forms]",
                   torch::Tensor(torch::Tensor, const torch::Tensor&),
                   torch::Tensor(torch::Tensor&, torch::Tensor),
                   torch::Tensor(torch::Tensor&&, const torch::Tensor&)) {
  CHECK(outputs_of(Takes<TestType>(), 2) == 1);
  CHECK_THAT(refusal([] { outputs_of(Takes<TestType>(), 3); }),
             ContainsSubstring("takes 2 tensors") && ContainsSubstring("has 3"));
}

struct Const : Layer {
  torch::Tensor forward(torch::Tensor x) const noexcept { return linear.ptr()->forward(x); }
};

TEST_CASE("forward may be const and noexcept, and then the module const", "[compiler][forms]") {
  const Const module;
  CHECK(outputs_of(module) == 1);
  CHECK(outputs_of(std::make_shared<const Const>()) == 1);
}

struct Defaults : Layer {
  torch::Tensor forward(torch::Tensor x,
                        std::optional<torch::Tensor> shift = {},
                        double scale = 2.0) {
    const auto y = linear(x) * scale;
    return shift ? y + *shift : y;
  }
};

TEST_CASE("an argument with a default may be left out, and may be given if it is a tensor",
          "[compiler][forms]") {
  CHECK(outputs_of(Defaults(), 1) == 1);
  CHECK(outputs_of(Defaults(), 2) == 1);
  CHECK_THAT(refusal([] { outputs_of(Defaults(), 3); }), ContainsSubstring("takes 1 or 2 tensors"));
}

struct Overloaded : Layer {
  torch::Tensor forward(torch::Tensor x) { return linear(x); }
  std::tuple<torch::Tensor, torch::Tensor> forward(torch::Tensor x, torch::Tensor y) {
    return {linear(x), linear(y)};
  }
  torch::Tensor forward(torch::Tensor x, int times) { return linear(x) * times; }
};

TEST_CASE("of several forwards, the one that takes as many tensors as there are inputs",
          "[compiler][forms]") {
  CHECK(outputs_of(Overloaded(), 1) == 1);
  CHECK(outputs_of(Overloaded(), 2) == 2);
  CHECK_THAT(refusal([] { outputs_of(Overloaded(), 3); }),
             ContainsSubstring("takes 1 or 2 tensors") && ContainsSubstring("has 3"));
}

struct Ambiguous : Layer {
  torch::Tensor forward(torch::Tensor x, int = 0) { return linear(x); }
  torch::Tensor forward(torch::Tensor x, double = 0) { return linear(x); }
  torch::Tensor forward(torch::Tensor x, torch::Tensor y) { return linear(x + y); }
};

TEST_CASE("a number for which two forwards fit equally well is not taken", "[compiler][forms]") {
  CHECK_THAT(refusal([] { outputs_of(Ambiguous(), 1); }), ContainsSubstring("takes 2 tensors"));
  CHECK(outputs_of(Ambiguous(), 2) == 1);
}

struct Generic : Layer {
  template <class T>
  auto forward(const T& x) {
    return linear(x.contiguous());
  }
};

struct Variadic : Layer {
  template <class... T>
  torch::Tensor forward(T... x) {
    return linear((x + ...));
  }
};

TEST_CASE("forward may be a template", "[compiler][forms]") {
  CHECK(outputs_of(Generic()) == 1);
  CHECK(outputs_of(Variadic(), 3) == 1);
}

TEMPLATE_TEST_CASE("forward may take all tensors as one list",
                   "[compiler][forms]",
                   std::vector<torch::Tensor>,
                   const std::vector<torch::Tensor>&,
                   std::vector<torch::Tensor>&,
                   std::vector<torch::Tensor>&&,
                   at::TensorList) {
  struct List : Layer {
    torch::Tensor forward(TestType all) {
      torch::Tensor sum = all[0];
      for (std::size_t i = 1; i < all.size(); ++i) {
        sum = sum + all[i];
      }
      return linear(sum);
    }
  };
  CHECK(outputs_of(List(), 1) == 1);
  CHECK(outputs_of(List(), 10) == 1);
}

TEST_CASE("more tensors than are tried one by one are refused with the way out",
          "[compiler][forms]") {
  CHECK_THAT(refusal([] { outputs_of(NetImpl(), 9); }),
             ContainsSubstring("takes 1 tensor,") && ContainsSubstring("std::vector"));
  CHECK_THAT(refusal([] { outputs_of(NetImpl(), 0); }), ContainsSubstring("inputs is empty"));
}

// ---- results of forward -------------------------------------------------------------------------

struct TensorPair {
  torch::Tensor first, second;
};
struct Nested {
  TensorPair pair;
  std::vector<torch::Tensor> more;
  std::optional<torch::Tensor> absent;
  std::array<torch::Tensor, 2> both;
  torch::Tensor undefined;
};
struct Eight {
  torch::Tensor a, b, c, d, e, f, g, h;
};

template <class Result>
struct Returns : Layer {
  std::function<Result(torch::Tensor)> make;
  explicit Returns(std::function<Result(torch::Tensor)> m) : make(std::move(m)) {}
  Result forward(torch::Tensor x) { return make(linear(x)); }
};

template <class Result>
std::size_t returned(std::function<Result(torch::Tensor)> make) {
  Returns<Result> module(std::move(make));
  return outputs_of(module);
}

TEST_CASE("forward may return tuples, pairs, vectors, arrays and plain structs of tensors",
          "[compiler][forms]") {
  using T = torch::Tensor;
  CHECK(returned<std::tuple<T, T, T>>([](T y) { return std::tuple(y, y + 1, y + 2); }) == 3);
  CHECK(returned<std::pair<T, T>>([](T y) { return std::pair(y, y + 1); }) == 2);
  CHECK(returned<std::vector<T>>([](T y) { return std::vector<T>{y, y * 2}; }) == 2);
  CHECK(returned<std::array<T, 2>>([](T y) { return std::array<T, 2>{y, y * 2}; }) == 2);
  CHECK(returned<std::optional<T>>([](T y) { return std::optional<T>(y); }) == 1);
  CHECK(returned<std::tuple<T, std::tuple<T, T>>>(
            [](T y) { return std::tuple(y, std::tuple(y + 1, y + 2)); }) == 3);
  CHECK(returned<TensorPair>([](T y) { return TensorPair{y, y * 2}; }) == 2);
  CHECK(returned<Eight>([](T y) {
          return Eight{y, y + 1, y + 2, y + 3, y + 4, y + 5, y + 6, y + 7};
        }) == 8);
  CHECK(returned<Nested>([](T y) {
          return Nested{.pair = {y, y + 1},
                        .more = {y + 2},
                        .absent = {},
                        .both = {y + 3, y + 4},
                        .undefined = {}};
        }) == 5);
}

TEST_CASE("the outputs stand in the order in which they are written", "[compiler][forms]") {
  struct Ordered : Layer {
    Nested forward(torch::Tensor x) {
      const auto y = linear(x);
      return {.pair = {y, y + 1},
              .more = {y + 2},
              .absent = y + 3,
              .both = {y + 4, y + 5},
              .undefined = y + 6};
    }
  };
  Loss loss([](const Tensors& outputs, const Tensors&) {
    REQUIRE(outputs.size() == 7);
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      CHECK(torch::allclose(outputs[i], outputs[0] + static_cast<double>(i)));
    }
    return outputs[0].sum();
  });
  const Tensors outputs = internal::tensors_in(Ordered().forward(ordered_rows()));
  (void)loss.call()(outputs, {});
}

TEST_CASE("recurrent modules, which return nested tuples, compile as they are",
          "[compiler][forms]") {
  torch::nn::LSTM lstm(torch::nn::LSTMOptions(3, 4).batch_first(true));
  const auto x = torch::randn({4, 5, 3});
  const Program program = compile(
      lstm,
      {.inputs = {x}, .labels = {torch::randn({4, 5, 4})}, .loss = mean_square, .microbatches = 2});
  CHECK(program.compiled().graph.outputs.size() == 3);
}

TEST_CASE("a module that returns no tensor at all is refused", "[compiler][forms]") {
  CHECK_THAT(refusal(
                 [] {
                   returned<std::vector<torch::Tensor>>(
                       [](torch::Tensor) { return std::vector<torch::Tensor>(); });
                 },
                 Errc::CompileCapture),
             ContainsSubstring("returned no tensor"));
}

// ---- structures ---------------------------------------------------------------------------------

/// Is neither a plain struct nor another known structure.
class Ragged {
 public:
  Ragged(torch::Tensor values, torch::Tensor shift)
      : values_(std::move(values)), shift_(std::move(shift)) {}
  [[nodiscard]] torch::Tensor shifted() const { return values_ + shift_; }
  [[nodiscard]] std::vector<torch::Tensor> parts() const { return {values_, shift_}; }

 private:
  torch::Tensor values_, shift_;
};

}  // namespace

template <>
struct TensorsOf<Ragged> {
  static Ragged make(TensorReader& in) {
    torch::Tensor values = in.next();
    return {values, in.next()};
  }
  static std::vector<at::Tensor> list(const Ragged& ragged) { return ragged.parts(); }
};

namespace {

using Features = std::map<std::string, torch::Tensor>;

/// Uses every structure in one forward; each input counts with its own factor.
struct Structured : Layer {
  torch::Tensor forward(const std::tuple<torch::Tensor, TensorPair>& first,
                        Ragged& ragged,
                        std::array<torch::Tensor, 2> both,
                        std::optional<TensorPair> more,
                        const std::vector<torch::Tensor>& rest) {
    torch::Tensor sum = std::get<0>(first) + 2 * std::get<1>(first).first +
                        3 * std::get<1>(first).second + 4 * ragged.shifted() + 5 * both[0] +
                        6 * both[1];
    if (more) {
      sum = sum + 7 * more->first + 8 * more->second;
    }
    for (const torch::Tensor& one : rest) {
      sum = sum + 9 * one;
    }
    return linear(sum);
  }
};

struct Mapped : Layer {
  Features forward(torch::Tensor x, Features features) {
    const torch::Tensor y = linear(x + features.at("shift"));
    return {{"b", y}, {"a", features.count("scale") > 0 ? y * features.at("scale") : y}};
  }
};

struct RaggedBack : Layer {
  std::pair<Ragged, torch::Tensor> forward(Ragged ragged) {
    const torch::Tensor y = linear(ragged.shifted());
    return {Ragged(y, y + 1), y + 2};
  }
};

TEST_CASE("forward may take structures, which are filled in the order of the batch",
          "[compiler][forms]") {
  Structured module;
  for (const std::size_t count : {7U, 9U, 11U}) {
    std::vector<torch::Tensor> given;
    for (std::size_t i = 0; i < count; ++i) {
      given.push_back(torch::full({4, 3}, std::pow(10.0, static_cast<double>(i % 7))));
    }
    const double factors[] = {1, 2, 3, 4, 4, 5, 6, 7, 8, 9, 9};
    torch::Tensor sum = torch::zeros({4, 3});
    for (std::size_t i = 0; i < count; ++i) {
      sum = sum + factors[i] * given[i];
    }
    const auto outputs = internal::spread<internal::TakeOutputs>(module, given);
    CHECK(torch::allclose(outputs.at(0), module.linear(sum)));
    CHECK(outputs_of(module, count) == 1);
  }
  CHECK_THAT(refusal([&] { outputs_of(module, 6); }), ContainsSubstring("more tensors than the 6"));
  CHECK_THAT(refusal([&] { outputs_of(module, 8); }), ContainsSubstring("more tensors than the 8"));
  CHECK(outputs_of(RaggedBack(), 2) == 3);
  CHECK_THAT(refusal([] { outputs_of(RaggedBack(), 3); }),
             ContainsSubstring("takes 2 tensors, the batch has 3"));
  torch::nn::LSTM lstm(torch::nn::LSTMOptions(3, 3).batch_first(true));
  CHECK_THAT(refusal([&] { outputs_of(lstm, 4); }),
             ContainsSubstring("takes 3 tensors, the batch has 4"));
}

TEST_CASE("a map has the named tensors of the batch, and its results are in the order of its keys",
          "[compiler][forms]") {
  Mapped module;
  const auto compiled = [&](const Batch& batch) {
    const Program program =
        compile(module, {.inputs = batch, .loss = sum_of_all, .microbatches = 2});
    return program.compiled().graph.outputs.size();
  };
  CHECK(compiled({ordered_rows(), named("shift", ordered_rows())}) == 2);
  CHECK(compiled({named("x", ordered_rows()),
                  named("scale", ordered_rows()),
                  named("shift", ordered_rows())}) == 2);
  CHECK_THAT(refusal([&] {
               (void)compiled({ordered_rows(), ordered_rows()});
             }),
             ContainsSubstring("input 1 has no name") && ContainsSubstring("sc::named"));
  const Features back{{"b", ordered_rows()}, {"a", ordered_rows() + 1}};
  CHECK(torch::equal(internal::tensors_in(back).at(0), ordered_rows() + 1));
}

TEST_CASE("names that a step's batch has are those of the program", "[compiler][forms]") {
  Mapped module;
  const Program program = compile(module,
                                  {.inputs = {ordered_rows(), named("shift", ordered_rows())},
                                   .loss = sum_of_all,
                                   .microbatches = 2});
  CHECK_NOTHROW(parts_of(program, {ordered_rows(), named("shift", ordered_rows())}, {}));
  CHECK_NOTHROW(parts_of(program, {ordered_rows(), ordered_rows()}, {}));
  CHECK_THAT(refusal([&] {
               (void)parts_of(program, {named("shift", ordered_rows()), ordered_rows()}, {});
             }),
             ContainsSubstring("named \"shift\" and was compiled as \"\""));
}

// ---- options ------------------------------------------------------------------------------------

TEST_CASE("wrong arguments of compile are refused with the expected ones", "[compiler][options]") {
  testing::Chain module(1);
  const auto x = torch::randn({6, 8});
  const auto refused = [&](CompileOptions options, Errc code = Errc::UsageArgument) {
    options.loss = mean_square;
    return refusal([&] { (void)compile(module, options); }, code);
  };
  CHECK_THAT(refused({.inputs = {x}, .labels = {x}, .microbatches = 4}, Errc::CompileShape),
             ContainsSubstring("4 microbatches do not divide") && ContainsSubstring("6 rows"));
  CHECK_THAT(refused({.inputs = {x, x}, .labels = {x}, .microbatches = 2}),
             ContainsSubstring("takes 1 tensor,") && ContainsSubstring("has 2"));
  CHECK_THAT(refused({.inputs = {x}, .labels = {x}, .microbatches = 0}),
             ContainsSubstring("microbatches must be at least 1, found 0"));
  CHECK_THAT(refused({.inputs = {x}, .labels = {x}, .microbatches = 2, .shapes = 0}),
             ContainsSubstring("shapes must be at least 1") && ContainsSubstring("found 0"));
}

TEST_CASE("a loss that reaches no parameter is refused", "[compiler][options]") {
  struct Detached : Layer {
    torch::Tensor forward(torch::Tensor x) { return linear(x).detach() * 2; }
  };
  NetImpl frozen;
  for (auto& parameter : frozen.parameters()) {
    parameter.requires_grad_(false);
  }
  CHECK_THAT(refusal([] { outputs_of(Detached()); }, Errc::CompileCapture),
             ContainsSubstring("reaches no parameter"));
  CHECK_THAT(refusal([&] { outputs_of(frozen); }, Errc::CompileCapture),
             ContainsSubstring("reaches no parameter"));
}

// ---- what stays as it was -----------------------------------------------------------------------

/// Draws random numbers, keeps statistics, and has a parameter that does not train.
struct Stateful : Layer {
  torch::nn::BatchNorm1d norm{register_module("norm", torch::nn::BatchNorm1d(3))};

  Stateful() { linear->bias.requires_grad_(false); }
  torch::Tensor forward(torch::Tensor x) {
    return torch::dropout(norm(linear(x)), 0.5, is_training());
  }
};

/// Holds everything that a caller can see of a module.
struct Snapshot {
  std::vector<torch::Tensor> tensors, gradients;
  std::vector<std::int64_t> versions;
  std::vector<bool> trained, training;
  torch::Tensor random;

  explicit Snapshot(const torch::nn::Module& module)
      : random(at::globalContext().defaultGenerator(torch::kCPU).get_state().clone()) {
    for (const auto& p : module.parameters()) {
      tensors.push_back(p.clone());
      gradients.push_back(p.grad().defined() ? p.grad().clone() : torch::Tensor());
      versions.push_back(p._version());
      trained.push_back(p.requires_grad());
    }
    for (const auto& b : module.buffers()) {
      tensors.push_back(b.clone());
    }
    for (const auto& m : module.modules()) {
      training.push_back(m->is_training());
    }
  }
};

bool are_same(const std::vector<torch::Tensor>& a, const std::vector<torch::Tensor>& b) {
  return std::ranges::equal(a, b, [](const torch::Tensor& x, const torch::Tensor& y) {
    return x.defined() == y.defined() &&
           (!x.defined() || (x.dtype() == y.dtype() && torch::equal(x, y)));
  });
}

void check_same(const Snapshot& a, const Snapshot& b) {
  CHECK(are_same(a.tensors, b.tensors));
  CHECK(are_same(a.gradients, b.gradients));
  CHECK(a.versions == b.versions);
  CHECK(a.trained == b.trained);
  CHECK(a.training == b.training);
  CHECK(torch::equal(a.random, b.random));
}

TEST_CASE("CO-1: compile leaves the module as it was, even if it refuses it",
          "[compiler][unchanged]") {
  const auto module = std::make_shared<Stateful>();
  module->linear->eval();
  module->linear->weight.mutable_grad() = torch::rand({3, 3});
  const auto x = ordered_rows();
  const auto compile_with = [&](const Loss& loss) {
    (void)compile(module, {.inputs = {x}, .labels = {x}, .loss = loss, .microbatches = 2});
  };
  torch::manual_seed(4);
  const Snapshot before(*module);
  compile_with(mean_square);
  check_same(before, Snapshot(*module));
  const Loss decides = [](torch::Tensor o, torch::Tensor l) {
    return (o - l).sum() * o[0][0].item();
  };
  CHECK_THROWS_WITH(compile_with(decides),
                    ContainsSubstring("aten::item") && ContainsSubstring("(in the loss)"));
  check_same(before, Snapshot(*module));
}

/// Writes its input and then its output, as modules that save memory do.
struct WritesInPlace : Layer {
  torch::Tensor forward(torch::Tensor x, torch::Tensor shift) {
    return linear(x.mul_(2).add_(shift.neg_())).relu_();
  }
};

TEST_CASE("CO-1: compile leaves the batch as it was, even if module and loss write it in place",
          "[compiler][unchanged]") {
  const int microbatches = GENERATE(1, 2);
  WritesInPlace module;
  const auto x = ordered_rows();
  const auto y = ordered_rows();
  const auto shift = torch::rand({3});
  const auto shift_before = shift.clone();
  const auto loss = [](torch::Tensor output, torch::Tensor label) {
    return (output - label.mul_(3)).square().mean();
  };
  const Program program = compile(module,
                                  {.inputs = {x, replicated(shift)},
                                   .labels = {y},
                                   .loss = loss,
                                   .microbatches = microbatches});
  CHECK(torch::equal(x, ordered_rows()));
  CHECK(torch::equal(y, ordered_rows()));
  CHECK(torch::equal(shift, shift_before));
  CHECK(program.compiled().graph.constants.empty());
}

TEST_CASE("CO-1: a tensor given twice is two inputs, and stays as it was",
          "[compiler][unchanged]") {
  WritesInPlace module;
  const auto x = ordered_rows();
  const Program program =
      compile(module, {.inputs = {x, x}, .labels = {x}, .loss = mean_square, .microbatches = 2});
  CHECK(torch::equal(x, ordered_rows()));
  CHECK(program.compiled().graph.inputs[0] != program.compiled().graph.inputs[1]);
}

// ---- the module that is kept --------------------------------------------------------------------

TEST_CASE("CO-2: a program keeps a module that is shared, and tells of another that is gone",
          "[compiler][kept]") {
  auto shared = std::make_shared<NetImpl>();
  const CompileOptions options{.inputs = {ordered_rows()}, .loss = sum_of_all, .microbatches = 2};
  const Program kept = compile(shared, options);
  const Program by_reference = compile(*shared, options);
  const Program orphan = [&] {
    NetImpl module;
    return compile(module, options);
  }();
  const std::weak_ptr<NetImpl> life = shared;
  shared.reset();
  CHECK_FALSE(life.expired());
  const Batch larger{torch::randn({8, 3})};
  CHECK_NOTHROW(parts_of(kept, larger, {}));
  CHECK_NOTHROW(parts_of(by_reference, larger, {}));
  CHECK_THAT(refusal([&] { (void)parts_of(orphan, larger, {}); }, Errc::CompileShape),
             ContainsSubstring("the module it was compiled from is gone"));
  CHECK_NOTHROW(parts_of(orphan, options.inputs, {}));
}

}  // namespace
}  // namespace stagecraft
