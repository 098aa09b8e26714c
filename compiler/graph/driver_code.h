/// DriverCode is code of the user's program that runs on the driver, between two parts of a stage
/// (native/on_driver.h). The graph keeps it as it keeps custom functions.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

namespace stagecraft {

class DriverCode {
 public:
  using Tensors = std::vector<at::Tensor>;
  using Call = std::function<Tensors(const Tensors& values)>;

  DriverCode(std::string given_name, Call call)
      : given_name_(std::move(given_name)),
        name_("driver code " + given_name_),
        call_(std::move(call)) {}

  /// Returns the name that the user gave it.
  [[nodiscard]] const std::string& given_name() const { return given_name_; }
  /// Returns "driver code matcher".
  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] const Call& call() const { return call_; }

 private:
  std::string given_name_, name_;
  Call call_;
};

}  // namespace stagecraft
