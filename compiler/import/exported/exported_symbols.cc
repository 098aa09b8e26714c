#include "stagecraft/compiler/import/exported/exported_symbols.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <utility>

#include <ATen/core/Tensor.h>

#include "stagecraft/base/error.h"

namespace stagecraft::exported {
namespace {

using Values = std::vector<c10::IValue>;

const c10::IValue& argument(const Values& v, std::size_t i) {
  if (i >= v.size()) {
    throw Error(Errc::CompileCapture, "arithmetic on sizes lacks an operand; the file is damaged");
  }
  return v[i];
}

bool whole(const c10::IValue& v) {
  return v.isInt() || v.isBool();
}

std::int64_t int_of(const c10::IValue& v) {
  return v.isBool() ? static_cast<std::int64_t>(v.toBool()) : v.toInt();
}

double real(const c10::IValue& v) {
  return whole(v) ? static_cast<double>(int_of(v)) : v.toDouble();
}

/// Computes as Python does: the result is whole if both numbers are.
template <class F>
c10::IValue arithmetic(const Values& v, F&& f) {
  const c10::IValue& a = argument(v, 0);
  const c10::IValue& b = argument(v, 1);
  return whole(a) && whole(b) ? c10::IValue(f(int_of(a), int_of(b)))
                              : c10::IValue(f(real(a), real(b)));
}

template <class F>
c10::IValue comparison(const Values& v, F&& f) {
  const c10::IValue& a = argument(v, 0);
  const c10::IValue& b = argument(v, 1);
  return whole(a) && whole(b) ? f(int_of(a), int_of(b)) : f(real(a), real(b));
}

[[noreturn]] void refuse_zero() {
  throw Error(Errc::CompileCapture, "arithmetic on sizes divides by zero");
}

std::int64_t floor_divide(std::int64_t a, std::int64_t b) {
  if (b == 0) {
    refuse_zero();
  }
  if (b == -1) {  // the smallest number / -1 overflows, and the processor traps as for zero
    return static_cast<std::int64_t>(std::uint64_t{0} - static_cast<std::uint64_t>(a));
  }
  const std::int64_t quotient = a / b;
  return quotient - static_cast<std::int64_t>(a % b != 0 && (a < 0) != (b < 0));
}
double floor_divide(double a, double b) {
  return std::floor(a / b);
}

c10::IValue power(const Values& v) {
  const c10::IValue& a = argument(v, 0);
  const c10::IValue& b = argument(v, 1);
  const double result = std::pow(real(a), real(b));
  return whole(a) && whole(b) && int_of(b) >= 0 ? c10::IValue(static_cast<std::int64_t>(result))
                                                : c10::IValue(result);
}

const at::Tensor& tensor(const Values& v) {
  return argument(v, 0).toTensor();
}

/// The table is not sorted: it has a few dozen names, each looked up once per node.
constexpr std::pair<std::string_view, SymbolFunction> kFunctions[] = {
    {"_operator.add", [](const Values& v) { return arithmetic(v, std::plus<>()); }},
    {"_operator.sub", [](const Values& v) { return arithmetic(v, std::minus<>()); }},
    {"_operator.mul", [](const Values& v) { return arithmetic(v, std::multiplies<>()); }},
    {"_operator.floordiv",
     [](const Values& v) {
       return arithmetic(v, [](auto a, auto b) { return floor_divide(a, b); });
     }},
    {"_operator.mod",
     [](const Values& v) {
       return arithmetic(v, [](auto a, auto b) { return a - b * floor_divide(a, b); });
     }},
    {"_operator.truediv",
     [](const Values& v) -> c10::IValue {
       if (real(argument(v, 1)) == 0.0) {
         refuse_zero();
       }
       return real(argument(v, 0)) / real(argument(v, 1));
     }},
    {"_operator.pow", power},
    {"_operator.neg",
     [](const Values& v) -> c10::IValue {
       return whole(argument(v, 0)) ? c10::IValue(-int_of(v[0])) : c10::IValue(-real(v[0]));
     }},
    {"_operator.pos", [](const Values& v) { return argument(v, 0); }},
    {"_operator.eq", [](const Values& v) { return comparison(v, std::equal_to<>()); }},
    {"_operator.ne", [](const Values& v) { return comparison(v, std::not_equal_to<>()); }},
    {"_operator.lt", [](const Values& v) { return comparison(v, std::less<>()); }},
    {"_operator.le", [](const Values& v) { return comparison(v, std::less_equal<>()); }},
    {"_operator.gt", [](const Values& v) { return comparison(v, std::greater<>()); }},
    {"_operator.ge", [](const Values& v) { return comparison(v, std::greater_equal<>()); }},
    {"_operator.and_",
     [](const Values& v) -> c10::IValue {
       return argument(v, 0).toBool() && argument(v, 1).toBool();
     }},
    {"_operator.or_",
     [](const Values& v) -> c10::IValue {
       return argument(v, 0).toBool() || argument(v, 1).toBool();
     }},
    {"torch.sym_not", [](const Values& v) -> c10::IValue { return !argument(v, 0).toBool(); }},
    {"torch.sym_max",
     [](const Values& v) { return arithmetic(v, [](auto a, auto b) { return std::max(a, b); }); }},
    {"torch.sym_min",
     [](const Values& v) { return arithmetic(v, [](auto a, auto b) { return std::min(a, b); }); }},
    {"torch.sym_float", [](const Values& v) -> c10::IValue { return real(argument(v, 0)); }},
    {"torch.sym_int",
     [](const Values& v) -> c10::IValue {
       return static_cast<std::int64_t>(real(argument(v, 0)));
     }},
    {"math.trunc",
     [](const Values& v) -> c10::IValue {
       return static_cast<std::int64_t>(real(argument(v, 0)));
     }},
    {"torch.sym_sqrt",
     [](const Values& v) -> c10::IValue { return std::sqrt(real(argument(v, 0))); }},
    {"torch.sym_ite",
     [](const Values& v) -> c10::IValue {
       return argument(v, 0).toBool() ? argument(v, 1) : argument(v, 2);
     }},
    {"torch.ops.aten.sym_size.int",
     [](const Values& v) -> c10::IValue { return tensor(v).size(argument(v, 1).toInt()); }},
    {"torch.ops.aten.sym_stride.int",
     [](const Values& v) -> c10::IValue { return tensor(v).stride(argument(v, 1).toInt()); }},
    {"torch.ops.aten.sym_numel.default",
     [](const Values& v) -> c10::IValue { return tensor(v).numel(); }},
    {"torch.ops.aten.sym_storage_offset.default",
     [](const Values& v) -> c10::IValue { return tensor(v).storage_offset(); }},
};

}  // namespace

std::optional<SymbolFunction> symbol_function(std::string_view target) {
  for (const auto& [name, function] : kFunctions) {
    if (name == target) {
      return function;
    }
  }
  return std::nullopt;
}

}  // namespace stagecraft::exported
