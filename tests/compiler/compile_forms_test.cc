/// The forms in which a module may come, and what its forward may take and return.
#include <array>
#include <memory>
#include <optional>

#include <torch/torch.h>

#include "stagecraft/base/error.h"
#include "stagecraft/compiler/compile.h"
#include "stagecraft/compiler/compiled_program.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/modules.h"
#include "stagecraft/tests/support/refusal.h"

namespace stagecraft {
namespace {

using Catch::Matchers::ContainsSubstring;
using testing::mean_square;

torch::Tensor rows(std::int64_t width = 3) {
  torch::manual_seed(5);
  return torch::randn({4, width});
}

/// A linear layer from three to three for each module below to use.
struct Layer : torch::nn::Module {
  torch::nn::Linear linear{register_module("linear", torch::nn::Linear(3, 3))};
};

/// The loss of all outputs, which thereby must have been found.
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
    batch.emplace_back(rows() + static_cast<double>(i));
  }
  const Program program = compile(module, {.inputs = batch, .loss = sum_of_all, .microbatches = 2});
  CHECK_FALSE(program.parameter_names().empty());
  return program.compiled().graph.outputs.size();
}

// ---- what holds the module
// -----------------------------------------------------------------------

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

// ---- what forward takes
// --------------------------------------------------------------------------

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

TEST_CASE("what has a default need not be given, and may be where it is a tensor",
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

// ---- what forward returns
// ------------------------------------------------------------------------

struct Pair {
  torch::Tensor first, second;
};
struct Nested {
  Pair pair;
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
  CHECK(returned<Pair>([](T y) { return Pair{y, y * 2}; }) == 2);
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
  const Tensors outputs = internal::tensors_in(Ordered().forward(rows()));
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

}  // namespace
}  // namespace stagecraft
