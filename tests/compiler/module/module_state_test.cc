/// Tests the pattern of a module's parameters.
#include "stagecraft/compiler/module/module_state.h"

#include <memory>

#include <torch/torch.h>

#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/refusal.h"

namespace stagecraft {
namespace {

using Catch::Matchers::ContainsSubstring;

struct Towers : torch::nn::Module {
  torch::nn::Sequential text{torch::nn::Linear(2, 3), torch::nn::Linear(3, 2)};
  torch::nn::Linear head{2, 2};
  torch::nn::Dropout dropout;

  Towers() {
    register_module("text", text);
    register_module("head", head);
    register_module("dropout", dropout);
  }
};

TEST_CASE("the parameters below a module have one pattern, however both are passed",
          "[compiler][module]") {
  Towers on_stack;
  const auto shared = std::make_shared<Towers>();
  CHECK(below(on_stack, on_stack.text) == "text.*");
  CHECK(below(on_stack, *on_stack.text) == "text.*");
  CHECK(below(&on_stack, on_stack.text->ptr(0)) == "text.0.*");
  CHECK(below(shared, shared->head) == "head.*");
  CHECK(below(shared, shared->head.ptr()) == "head.*");
}

TEST_CASE("a module that is not inside, has no parameters, or is tied to others has no pattern",
          "[compiler][module][bad-input]") {
  const auto towers = std::make_shared<Towers>();
  const Towers others;
  CHECK_THAT(refusal([&] { (void)below(towers, others.head); }), ContainsSubstring("not inside"));
  CHECK_THAT(refusal([&] { (void)below(towers, towers); }), ContainsSubstring("not inside"));
  CHECK_THAT(refusal([&] { (void)below(towers, towers->dropout); }),
             ContainsSubstring("dropout has no parameters"));
  CHECK_THAT(refusal([&] { (void)below(towers, torch::nn::Linear(nullptr)); }),
             ContainsSubstring("empty module holder"));
  towers->head->register_parameter("tied", towers->text->ptr<torch::nn::LinearImpl>(1)->weight);
  CHECK_THAT(refusal([&] { (void)below(towers, towers->head); }),
             ContainsSubstring("head.tied is tied to text.1.weight"));
}

}  // namespace
}  // namespace stagecraft
