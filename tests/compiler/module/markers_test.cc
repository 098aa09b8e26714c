/// Tests the callables that a marker can be put around.
#include "stagecraft/compiler/module/markers.h"

#include <memory>

#include <torch/torch.h>

#include "stagecraft/base/error.h"
#include "stagecraft/tests/support/catch.h"

namespace stagecraft {
namespace {

using Catch::Matchers::ContainsSubstring;

struct DoublerImpl : torch::nn::Module {
  torch::Tensor forward(torch::Tensor x) { return x * 2; }
  torch::Tensor thrice(const torch::Tensor& x) const { return x * 3; }
};
TORCH_MODULE(Doubler);

struct ConstDoubler : torch::nn::Module {
  torch::Tensor forward(torch::Tensor x, double times = 2) const { return x * times; }
};

torch::Tensor twice(const torch::Tensor& x) {
  return x * 2;
}

TEST_CASE("a stage may be a module in any form, or anything callable", "[compiler][markers]") {
  const auto x = torch::ones({2});
  const auto doubles = [&](auto&& callable) {
    return torch::equal(stage("s", callable, x), x * 2);
  };
  DoublerImpl module;
  Doubler holder;
  const Doubler const_holder;
  const ConstDoubler const_module;
  torch::nn::AnyModule any(holder);
  torch::nn::Sequential chain(holder);
  const torch::nn::Sequential const_chain(holder);
  CHECK(doubles(module));
  CHECK(doubles(&module));
  CHECK(doubles(holder));
  CHECK(doubles(const_holder));
  CHECK(doubles(const_module));
  CHECK(doubles(any));
  CHECK(doubles(chain));
  CHECK(doubles(const_chain));
  CHECK(doubles(holder.ptr()));
  CHECK(doubles(std::make_unique<DoublerImpl>()));
  CHECK(doubles(Doubler()));
  CHECK(doubles(twice));
  CHECK(doubles(&twice));
  CHECK(doubles(std::function<torch::Tensor(torch::Tensor)>(twice)));
  CHECK(doubles([](const auto& t) { return t * 2; }));
  CHECK(doubles([n = 2](torch::Tensor t) mutable { return t * n; }));
  CHECK(torch::equal(stage("s", &DoublerImpl::thrice, module, x), x * 3));
  CHECK(torch::equal(stage("s", const_module, x, 5.0), x * 5));
  CHECK(torch::equal(region("EP", const_holder, x), x * 2));
}

TEST_CASE("a stage gives on arguments and results as they are", "[compiler][markers]") {
  auto x = torch::ones({2});
  const auto same = [](torch::Tensor& t) -> torch::Tensor& { return t; };
  CHECK(&stage("s", same, x) == &x);
  CHECK(*stage(
            "s", [](std::unique_ptr<int> p) { return p; }, std::make_unique<int>(3)) == 3);
}

TEST_CASE("a part to recompute is called like a stage, with a name or without",
          "[compiler][markers]") {
  const auto x = torch::ones({2});
  const Doubler holder;
  CHECK(torch::equal(recompute(holder, x), x * 2));
  CHECK(torch::equal(recompute(twice, x), x * 2));
  CHECK(torch::equal(recompute("block", holder, x), x * 2));
  CHECK(torch::equal(recompute(std::string("block"), [&] { return x * 2; }), x * 2));
  const auto scopes = recompute("a", [] { return recompute([] { return open_annotations(); }); });
  REQUIRE(scopes.size() == 2);
  CHECK(scopes[0].tag == kRecomputeTag);
  CHECK(scopes[0].name == "a");
  CHECK(scopes[1].tag == kRecomputeTag);
  CHECK_THROWS_WITH(recompute("block", Doubler(nullptr), x), ContainsSubstring("\"block\""));
}

TEST_CASE("a stage of nothing is refused by its name", "[compiler][markers]") {
  const auto x = torch::ones({2});
  const auto refusal = [&](auto nothing) -> std::string {
    try {
      (void)stage("encoder", nothing, x);
    } catch (const Error& error) {
      CHECK(error.code() == Errc::UsageArgument);
      return error.message();
    }
    return "accepted";
  };
  CHECK_THAT(refusal(Doubler(nullptr)),
             ContainsSubstring("stage \"encoder\"") && ContainsSubstring("empty module holder"));
  CHECK_THAT(refusal(std::shared_ptr<DoublerImpl>()), ContainsSubstring("stage \"encoder\""));
  CHECK_THAT(refusal(static_cast<DoublerImpl*>(nullptr)), ContainsSubstring("stage \"encoder\""));
  CHECK_THAT(refusal(torch::nn::AnyModule()), ContainsSubstring("stage \"encoder\""));
  CHECK_THAT(refusal(std::function<torch::Tensor(torch::Tensor)>()),
             ContainsSubstring("stage \"encoder\""));
  CHECK(open_annotations().empty());
}

}  // namespace
}  // namespace stagecraft
