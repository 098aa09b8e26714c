#include "stagecraft/base/error_value.h"

#include <optional>

#include "stagecraft/base/check.h"

namespace stagecraft {
namespace {

template <class Id>
std::int64_t number_of(const std::optional<Id>& id) {
  return id ? static_cast<std::int64_t>(id->value) : ErrorValue::kAbsent;
}

template <class Id>
std::optional<Id> id_of(std::int64_t number) {
  return number == ErrorValue::kAbsent ? std::nullopt : std::optional<Id>(Id(number));
}

Error one_error(const ErrorValue& value) {
  Error error(value.code, value.text);
  error.about(value.option).advise(value.advice);
  error.with({.rank = id_of<Rank>(value.rank),
              .stage = id_of<StageId>(value.stage),
              .microbatch = id_of<Microbatch>(value.microbatch),
              .step = id_of<Step>(value.step),
              .task = value.task,
              .peer = value.peer});
  return error;
}

}  // namespace

ErrorChain to_chain(const Error& error) {
  ErrorChain chain;
  for (const Error* e = &error; e != nullptr; e = e->cause()) {
    const ErrorContext& where = e->context();
    chain.push_back({.code = e->code(),
                     .text = e->text(),
                     .option = e->option(),
                     .advice = e->advice(),
                     .rank = number_of(where.rank),
                     .stage = number_of(where.stage),
                     .microbatch = number_of(where.microbatch),
                     .step = number_of(where.step),
                     .task = where.task,
                     .peer = where.peer});
  }
  return chain;
}

Error to_error(const ErrorChain& chain) {
  SC_CHECK(!chain.empty(), "an empty chain is not an error");
  Error error = one_error(chain.back());
  for (auto value = chain.rbegin() + 1; value != chain.rend(); ++value) {
    Error outer = one_error(*value);
    outer.because(error);
    error = outer;
  }
  return error;
}

}  // namespace stagecraft
