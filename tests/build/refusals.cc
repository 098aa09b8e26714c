// Holds code that sc::compile, a loss and sc::stage refuse. No program contains it: refusals_test
// compiles it, and expects one error with the text of each `says:` below, and no other error.
#include <array>
#include <memory>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "stagecraft/compiler/compile.h"
#include "stagecraft/compiler/module/markers.h"

namespace sc = stagecraft;
using at::Tensor;

namespace {

/// Has what compile needs of torch::nn::Module, whose header takes twenty seconds to compile.
struct Module {
  struct Item {
    [[nodiscard]] const std::string& key() const;
    [[nodiscard]] const Tensor& value() const;
  };
  [[nodiscard]] std::vector<Item> named_parameters() const;
  [[nodiscard]] std::vector<Item> named_buffers() const;
};

template <class M>
void compiled(M&& module) {
  (void)sc::compile(module, {.inputs = {Tensor()}});
}

// ---- modules ------------------------------------------------------------------------------------

// says: torch::nn::Module, the base class, has no forward
[[maybe_unused]] void base_class(std::shared_ptr<torch::nn::Module> module) {
  compiled(module);
}

// says: sc::compile takes a torch::nn::Module
[[maybe_unused]] void no_module() {
  compiled([](Tensor x) { return x; });
}

// says: sc::compile takes a torch::nn::Module
class PrivateBase : Module {
 public:
  Tensor forward(Tensor);
};
[[maybe_unused]] void private_base(PrivateBase& module) {
  compiled(module);
}

// says: has no such forward, or several that fit equally well
struct NoForward : Module {};
[[maybe_unused]] void no_forward(NoForward& module) {
  compiled(module);
}

// says: has no such forward, or several that fit equally well
class PrivateForward : public Module {
  Tensor forward(Tensor);
};
[[maybe_unused]] void private_forward(PrivateForward& module) {
  compiled(module);
}

// says: has no such forward, or several that fit equally well
struct MoreParameters : Module {
  Tensor forward(Tensor, int);
};
[[maybe_unused]] void more_parameters(const std::unique_ptr<MoreParameters>& module) {
  compiled(module);
}

// says: has no such forward, or several that fit equally well
struct Ambiguous : Module {
  Tensor forward(Tensor, int = 0);
  Tensor forward(Tensor, double = 0);
};
[[maybe_unused]] void ambiguous(Ambiguous& module) {
  compiled(module);
}

// says: the module is const and its forward is not
struct NotConst : Module {
  Tensor forward(Tensor);
};
[[maybe_unused]] void not_const(const NotConst& module) {
  compiled(module);
}

// says: forward must return tensors
struct ReturnsNothing : Module {
  void forward(Tensor);
};
[[maybe_unused]] void returns_nothing(ReturnsNothing& module) {
  compiled(module);
}

// says: forward must return tensors
struct Mixed {
  Tensor output;
  double temperature;
};
struct ReturnsMixed : Module {
  Mixed forward(Tensor);
};
[[maybe_unused]] void returns_mixed(ReturnsMixed& module) {
  compiled(module);
}

// says: forward must return tensors
struct Derived : Mixed {
  Tensor more;
};
struct ReturnsDerived : Module {
  Derived forward(Tensor);
};
[[maybe_unused]] void returns_derived(ReturnsDerived& module) {
  compiled(module);
}

// says: forward must return tensors
struct Nine {
  Tensor a, b, c, d, e, f, g, h, i;
};
struct ReturnsNine : Module {
  std::vector<Nine> forward(Tensor);
};
[[maybe_unused]] void returns_nine(ReturnsNine& module) {
  compiled(module);
}

// says: has no such forward, or several that fit equally well
struct TakesUnordered : Module {
  Tensor forward(Tensor, std::unordered_map<std::string, Tensor>);
};
[[maybe_unused]] void takes_unordered(TakesUnordered& module) {
  compiled(module);
}

// says: has no such forward, or several that fit equally well
struct OutOfReach {
  explicit OutOfReach(Tensor);
};
struct TakesUnknown : Module {
  Tensor forward(std::tuple<Tensor, OutOfReach>);
};
[[maybe_unused]] void takes_unknown(TakesUnknown& module) {
  compiled(module);
}

// says: forward must return tensors
struct ReturnsUnordered : Module {
  std::unordered_map<std::string, Tensor> forward(std::tuple<Tensor, Tensor>);
};
[[maybe_unused]] void returns_unordered(ReturnsUnordered& module) {
  compiled(module);
}

// ---- losses -------------------------------------------------------------------------------------

// says: CompileOptions::loss takes
[[maybe_unused]] sc::Loss returns_number() {
  return [](Tensor, Tensor) { return 1.0; };
}

// says: CompileOptions::loss takes
[[maybe_unused]] sc::CompileOptions takes_more() {
  return {.loss = [](Tensor, Tensor, int) { return Tensor(); }};
}

// says: CompileOptions::loss takes
Tensor with_default(Tensor, Tensor, std::string = "mean");
[[maybe_unused]] sc::Loss default_lost() {
  return with_default;
}

// says: CompileOptions::loss takes
[[maybe_unused]] sc::Loss no_function() {
  return std::string("mse");
}

// says: CompileOptions::loss takes
[[maybe_unused]] sc::Loss null() {
  return nullptr;
}

// ---- stages -------------------------------------------------------------------------------------

// says: const and its forward or () is not
[[maybe_unused]] void const_stage(const NotConst& module) {
  sc::stage("a", module, Tensor());
}

// says: neither a forward nor a () that takes these arguments
[[maybe_unused]] void wrong_arguments(NotConst& module) {
  sc::stage("b", module, Tensor(), Tensor());
}

// says: neither a forward nor a () that takes these arguments
[[maybe_unused]] void no_callable() {
  sc::stage("c", 3, Tensor());
}

// says: neither a forward nor a () that takes these arguments
[[maybe_unused]] void no_arguments() {
  sc::region("EP", [](Tensor x) { return x; });
}

}  // namespace
