#include "stagecraft/compiler/capture/captured_values.h"

namespace stagecraft {
namespace {

/// Returns whether the value may come from the driver or from another stage.
bool may_cross(ValueKind kind) {
  return kind == ValueKind::Input || kind == ValueKind::Label || kind == ValueKind::Computed;
}

}  // namespace

std::optional<ValueId> CapturedValues::find(const at::Tensor& tensor) const {
  const auto known = values_.find(tensor.unsafeGetTensorImpl());
  return known == values_.end() ? std::nullopt : std::optional(known->second);
}

std::optional<ValueId> CapturedValues::find(const torch::autograd::Edge& edge) const {
  return gradients_.value_of(edge);
}

std::optional<ValueId> CapturedValues::find_same_memory(const at::Tensor& tensor) const {
  if (!share_storage_with(tensor)) {
    return std::nullopt;
  }
  const Layout layout(tensor);
  const int set = alias_sets_.at(tensor.storage().unsafeGetStorageImpl());
  for (const auto& [value, known] : values_of_set_.at(set)) {
    if (known == layout) {
      return value;
    }
  }
  return std::nullopt;
}

bool CapturedValues::share_storage_with(const at::Tensor& tensor) const {
  if (!tensor.has_storage()) {
    return false;
  }
  const auto set = alias_sets_.find(tensor.storage().unsafeGetStorageImpl());
  return set != alias_sets_.end() && values_of_set_.contains(set->second);
}

ValueId CapturedValues::add(const at::Tensor& tensor, ValueKind kind, int position) {
  const ValueId id{static_cast<int>(graph_.values.size())};
  const int set = alias_set_of(tensor);
  graph_.values.push_back({.kind = kind,
                           .position = position,
                           .sizes = tensor.sizes().vec(),
                           .dtype = tensor.scalar_type(),
                           .requires_grad = tensor.requires_grad(),
                           .alias_set = set,
                           .order = may_cross(kind) ? memory_order_of(tensor) : MemoryOrder()});
  values_[tensor.unsafeGetTensorImpl()] = id;
  gradients_.note(tensor, id);
  if (tensor.has_storage()) {
    values_of_set_[set].emplace_back(id, Layout(tensor));
  }
  hold(tensor);
  return id;
}

ValueId CapturedValues::add_result(const at::Tensor& tensor) {
  const std::optional<ValueId> known = find(tensor);
  const ValueId id =
      known ? *known : add(tensor, ValueKind::Computed, static_cast<int>(graph_.nodes.size()));
  graph_.values[id.index()].requires_grad = tensor.requires_grad();
  // An operator that writes in place gives a known value another node of autograd.
  gradients_.note(tensor, id);
  return id;
}

ValueId CapturedValues::append(Node node, const at::Tensor& result) {
  const ValueId id = add(result, ValueKind::Computed, static_cast<int>(graph_.nodes.size()));
  node.results.push_back(id);
  graph_.nodes.push_back(std::move(node));
  return id;
}

int CapturedValues::alias_set_of(const at::Tensor& tensor) {
  const int fresh = static_cast<int>(alias_sets_.size()) + 1;
  if (!tensor.has_storage()) {
    return 0;
  }
  c10::StorageImpl* storage = tensor.storage().unsafeGetStorageImpl();
  const auto [entry, added] = alias_sets_.try_emplace(storage, fresh);
  if (added) {
    storages_.push_back(tensor.storage().getWeakStorageImpl());
  }
  return entry->second;
}

void CapturedValues::hold(const at::Tensor& tensor) {
  impls_.emplace_back(tensor.getIntrusivePtr());
}

}  // namespace stagecraft
