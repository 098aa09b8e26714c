/// The lists of allowed operators. Each line of the first list is an operator of `aten` and its
/// overloads, as PyTorch writes them ("default" is the one without a name). The other lists hold
/// names only.
#include "stagecraft/compiler/libtorch/allowed_operators.h"

namespace stagecraft::internal {

const std::string_view kAllowedOperators = R"(
__and__: Scalar Tensor
__iand__: Scalar Tensor
__ilshift__: Scalar Tensor
__ior__: Scalar Tensor
__irshift__: Scalar Tensor
__ixor__: Scalar Tensor
__lshift__: Scalar Scalar_out Tensor Tensor_out
__or__: Scalar Tensor
__rshift__: Scalar Scalar_out Tensor Tensor_out
__xor__: Scalar Tensor
_adaptive_avg_pool2d: default out
_adaptive_avg_pool3d: default out
_aminmax: default dim dim_out out
_assert_async: default msg
_assert_scalar: default
_assert_tensor_metadata: default
_autocast_to_full_precision: default
_autocast_to_reduced_precision: default
_cast_Byte: default
_cast_Char: default
_cast_Double: default
_cast_Float: default
_cast_Half: default
_cast_Int: default
_cast_Long: default
_cast_Short: default
_cdist_forward: default out
_conj: default
_conj_copy: default out
_conj_physical: default out
_convolution: default deprecated out
_convolution_mode: default
_dim_arange: default
_euclidean_dist: default out
_functional_assert_async: msg
_functional_assert_scalar: default
_functional_sym_constrain_range: default
_functional_sym_constrain_range_for_size: default
_is_all_true: default
_is_any_true: default
_linalg_check_errors: default
_linalg_det: default result
_linalg_solve_ex: default result
_local_scalar_dense: default
_log_softmax: default out
_logcumsumexp: default out
_lu_with_info: default
_neg_view: default
_neg_view_copy: default out
_pack_padded_sequence: default out
_pad_circular: default
_pad_enum: default
_prelu_kernel: default
_safe_softmax: default
_sample_dirichlet: default out
_scaled_dot_product_attention_math: default
_shape_as_tensor: default
_softmax: default out
_standard_gamma: default out
_to_copy: default out
_trilinear: default out
_unique: default out
_unique2: default out
_unsafe_index: Tensor
_unsafe_index_put: default
_unsafe_view: default out
_upsample_bicubic2d_aa: vec
_upsample_bilinear2d_aa: vec
_upsample_nearest_exact1d: default out vec
_upsample_nearest_exact2d: default out vec
_upsample_nearest_exact3d: default out vec
_weight_norm: default
abs: default out
abs_: default
absolute: default out
absolute_: default
acos: default out
acos_: default
acosh: default out
acosh_: default
adaptive_avg_pool1d: default out
adaptive_avg_pool2d: default out
adaptive_avg_pool3d: default out
adaptive_max_pool1d: default
adaptive_max_pool2d: default out
adaptive_max_pool3d: default out
add: Scalar Scalar_out Tensor out
add_: Scalar Tensor
addbmm: default out
addbmm_: default
addcdiv: default out
addcdiv_: default
addcmul: default out
addcmul_: default
addmm: default out
addmm_: default
addmv: default out
addmv_: default
addr: default out
addr_: default
adjoint: default
affine_grid_generator: default out
alias: default
alias_copy: default out
all: default all_out dim dims dims_out out
allclose: default
alpha_dropout: default
alpha_dropout_: default
amax: default out
amin: default out
aminmax: default out
angle: default out
any: default all_out dim dims dims_out out
arange: default out start start_out start_step
arccos: default out
arccos_: default
arccosh: default out
arccosh_: default
arcsin: default out
arcsin_: default
arcsinh: default out
arcsinh_: default
arctan: default out
arctan2: default out
arctan2_: default
arctan_: default
arctanh: default out
arctanh_: default
argmax: default out
argmin: default out
argsort: default stable stable_out
argwhere: default
as_strided: default
as_strided_: default
as_strided_copy: default out
as_strided_scatter: default out
asin: default out
asin_: default
asinh: default out
asinh_: default
atan: default out
atan2: default out
atan2_: default
atan_: default
atanh: default out
atanh_: default
atleast_1d: default Sequence
atleast_2d: default Sequence
atleast_3d: default Sequence
avg_pool1d: default out
avg_pool2d: default out
avg_pool3d: default out
baddbmm: default out
baddbmm_: default
bartlett_window: default out periodic periodic_out
batch_norm: default
bernoulli: default Tensor Tensor_out float_out out p
bernoulli_: Tensor float
bilinear: default
binary_cross_entropy: default out
binary_cross_entropy_with_logits: default out
bincount: default out
binomial: default out
bitwise_and: Scalar Scalar_Tensor Scalar_Tensor_out Scalar_out Tensor Tensor_out
bitwise_and_: Scalar Tensor
bitwise_left_shift: Scalar_Tensor Scalar_Tensor_out Tensor Tensor_Scalar Tensor_Scalar_out
    Tensor_out
bitwise_left_shift_: Tensor Tensor_Scalar
bitwise_not: default out
bitwise_not_: default
bitwise_or: Scalar Scalar_Tensor Scalar_Tensor_out Scalar_out Tensor Tensor_out
bitwise_or_: Scalar Tensor
bitwise_right_shift: Scalar_Tensor Scalar_Tensor_out Tensor Tensor_Scalar Tensor_Scalar_out
    Tensor_out
bitwise_right_shift_: Tensor Tensor_Scalar
bitwise_xor: Scalar Scalar_Tensor Scalar_Tensor_out Scalar_out Tensor Tensor_out
bitwise_xor_: Scalar Tensor
blackman_window: default out periodic periodic_out
block_diag: default out
bmm: default out
broadcast_tensors: default
broadcast_to: default
bucketize: Scalar Scalar_out Tensor Tensor_out
can_cast: default
cartesian_prod: default
cat: default out
cauchy: default out
cauchy_: default
cdist: default
ceil: default out
ceil_: default
celu: default out
celu_: default
chain_matmul: default out
chalf: default
channel_shuffle: default out
cholesky: default out
cholesky_inverse: default out
cholesky_solve: default out
chunk: default
clamp: default Tensor Tensor_out out
clamp_: default Tensor
clamp_max: default Tensor Tensor_out out
clamp_max_: default Tensor
clamp_min: default Tensor Tensor_out out
clamp_min_: default Tensor
clip: default Tensor Tensor_out out
clip_: default Tensor
clone: default out
col2im: default out
column_stack: default out
combinations: default
complex: default out
concat: default out
concatenate: default out
conj: default
conj_physical: default out
conj_physical_: default
constant_pad_nd: default out
contiguous: default
conv1d: default padding
conv2d: default padding
conv3d: default padding
conv_tbc: default out
conv_transpose1d: default
conv_transpose2d: input
conv_transpose3d: input
convolution: default out
copy: default out
copy_: default
copysign: Scalar Scalar_out Tensor out
copysign_: Scalar Tensor
corrcoef: default
cos: default out
cos_: default
cosh: default out
cosh_: default
cosine_embedding_loss: default
cosine_similarity: default
count_nonzero: default dim_IntList dim_IntList_out out
cov: default
cross: default out
cross_entropy_loss: default
ctc_loss: IntList Tensor
cummax: default out
cummin: default out
cumprod: default out
cumprod_: default
cumsum: default out
cumsum_: default
cumulative_trapezoid: dx x
deg2rad: default out
deg2rad_: default
det: default
detach: default
detach_: default
detach_copy: default out
diag: default out
diag_embed: default out
diagflat: default
diagonal: default
diagonal_copy: default out
diagonal_scatter: default out
diff: default out
digamma: default out
digamma_: default
dist: default out
div: Scalar Scalar_mode Scalar_mode_out Scalar_out Tensor Tensor_mode out out_mode
div_: Scalar Scalar_mode Tensor Tensor_mode
divide: Scalar Scalar_mode Tensor Tensor_mode out out_mode
divide_: Scalar Scalar_mode Tensor Tensor_mode
dot: default out
dropout: default
dropout_: default
dsplit: array int
dstack: default out
einsum: default
elu: default out
elu_: default
embedding: default out
embedding_bag: default padding_idx
embedding_renorm: default out
embedding_renorm_: default
empty: memory_format out
empty_like: default out
empty_permuted: default out
empty_strided: default out
eq: Scalar Scalar_out Tensor Tensor_out
eq_: Scalar Tensor
equal: default
erf: default out
erf_: default
erfc: default out
erfc_: default
erfinv: default out
erfinv_: default
exp: default out
exp2: default out
exp2_: default
exp_: default
expand: default
expand_as: default
expand_copy: default out
expm1: default out
expm1_: default
exponential: default out
exponential_: default
eye: default m m_out out
feature_alpha_dropout: default
feature_alpha_dropout_: default
feature_dropout: default
feature_dropout_: default
fft_fft: default out
fft_fft2: default out
fft_fftfreq: default out
fft_fftn: default out
fft_fftshift: default
fft_hfft: default out
fft_hfft2: default out
fft_hfftn: default out
fft_ifft: default out
fft_ifft2: default out
fft_ifftn: default out
fft_ifftshift: default
fft_ihfft: default out
fft_ihfft2: default out
fft_ihfftn: default out
fft_irfft: default out
fft_irfft2: default out
fft_irfftn: default out
fft_rfft: default out
fft_rfft2: default out
fft_rfftfreq: default out
fft_rfftn: default out
fill: Scalar Scalar_out Tensor Tensor_out
fill_: Scalar Tensor
fill_diagonal_: default
fix: default out
fix_: default
flatten: named_out_dim using_ints
flatten_dense_tensors: default
flip: default out
fliplr: default
flipud: default
float_power: Scalar Scalar_out Tensor_Scalar Tensor_Scalar_out Tensor_Tensor Tensor_Tensor_out
float_power_: Scalar Tensor
floor: default out
floor_: default
floor_divide: default Scalar Scalar_out out
floor_divide_: Scalar Tensor
fmax: default out
fmin: default out
fmod: Scalar Scalar_out Tensor Tensor_out
fmod_: Scalar Tensor
frac: default out
frac_: default
frexp: Tensor Tensor_out
frobenius_norm: dim out
full: default out
full_like: default out
gather: default out
gcd: default out
gcd_: default
ge: Scalar Scalar_out Tensor Tensor_out
ge_: Scalar Tensor
gelu: default out
gelu_: default
geometric: default out
geometric_: default
geqrf: default
ger: default out
glu: default out
gradient: array scalararray scalarint scalarrayarray scalarrayint tensorarray tensorarrayint
greater: Scalar Scalar_out Tensor Tensor_out
greater_: Scalar Tensor
greater_equal: Scalar Scalar_out Tensor Tensor_out
greater_equal_: Scalar Tensor
grid_sampler: default
grid_sampler_2d: default out
grid_sampler_3d: default out
group_norm: default
gru: input
gru_cell: default
gt: Scalar Scalar_out Tensor Tensor_out
gt_: Scalar Tensor
hamming_window: default out periodic periodic_alpha periodic_alpha_beta periodic_alpha_beta_out
    periodic_alpha_out periodic_out
hann_window: default out periodic periodic_out
hardshrink: default out
hardsigmoid: default out
hardsigmoid_: default
hardswish: default out
hardswish_: default
hardtanh: default out
hardtanh_: default
hash_tensor: default out
heaviside: default out
heaviside_: default
hinge_embedding_loss: default
histc: default out
histogram: bin_ct bin_ct_out bins_tensor bins_tensor_out
histogramdd: default TensorList_bins int_bins
hsplit: array int
hstack: default out
huber_loss: default out
hypot: default out
hypot_: default
i0: default out
i0_: default
igamma: default out
igamma_: default
igammac: default out
igammac_: default
im2col: default out
imag: default
index: Tensor Tensor_out
index_add: default out
index_add_: default
index_copy: default out
index_copy_: default
index_fill: int_Scalar int_Scalar_out int_Tensor int_Tensor_out
index_fill_: int_Scalar int_Tensor
index_put: default out
index_put_: default
index_reduce: default out
index_reduce_: default
index_select: default out
inner: default out
instance_norm: default
inverse: default out
is_complex: default
is_conj: default
is_floating_point: default
is_inference: default
is_neg: default
is_nonzero: default
is_same_size: default
is_signed: default
isclose: default
isfinite: default
isin: Scalar_Tensor Scalar_Tensor_out Tensor_Scalar Tensor_Scalar_out Tensor_Tensor
    Tensor_Tensor_out
isinf: default out
isnan: default out
isneginf: default out
isposinf: default out
isreal: default
istft: default
item: default
kaiser_window: default beta beta_out out periodic periodic_out
kl_div: default
kron: default out
kthvalue: default values
l1_loss: default
layer_norm: default
lcm: default out
lcm_: default
ldexp: Tensor out
ldexp_: default
le: Scalar Scalar_out Tensor Tensor_out
le_: Scalar Tensor
leaky_relu: default out
leaky_relu_: default
lerp: Scalar Scalar_out Tensor Tensor_out
lerp_: Scalar Tensor
less: Scalar Scalar_out Tensor Tensor_out
less_: Scalar Tensor
less_equal: Scalar Scalar_out Tensor Tensor_out
less_equal_: Scalar Tensor
lgamma: default out
lgamma_: default
lift: default out
lift_fresh: default
lift_fresh_copy: default out
linalg__powsum: default
linalg_cholesky: default out
linalg_cholesky_ex: default L
linalg_cond: default out p_str p_str_out
linalg_cross: default out
linalg_det: default out
linalg_diagonal: default
linalg_eig: default out
linalg_eigh: default eigvals
linalg_eigvals: default out
linalg_eigvalsh: default out
linalg_householder_product: default out
linalg_inv: default out
linalg_inv_ex: default inverse
linalg_ldl_factor: default out
linalg_ldl_factor_ex: default out
linalg_lstsq: default out
linalg_lu: default out
linalg_lu_factor: default out
linalg_lu_factor_ex: default out
linalg_matmul: default out
linalg_matrix_exp: default out
linalg_matrix_norm: default out str_ord str_ord_out
linalg_matrix_power: default out
linalg_matrix_rank: default atol_rtol_float atol_rtol_float_out atol_rtol_tensor
    atol_rtol_tensor_out out out_tol_tensor tol_tensor
linalg_multi_dot: default out
linalg_norm: default ord_str ord_str_out out
linalg_pinv: default atol_rtol_float atol_rtol_float_out atol_rtol_tensor atol_rtol_tensor_out
    out out_rcond_tensor rcond_tensor
linalg_qr: default out
linalg_slogdet: default out
linalg_solve: default out
linalg_solve_ex: default out
linalg_solve_triangular: default out
linalg_svd: default U
linalg_svdvals: default out
linalg_tensorinv: default out
linalg_tensorsolve: default out
linalg_vander: default
linalg_vecdot: default out
linalg_vector_norm: default out
linear: default out
linspace: default Scalar_Tensor Scalar_Tensor_out Tensor_Scalar Tensor_Scalar_out Tensor_Tensor
    Tensor_Tensor_out out
log: default out
log10: default out
log10_: default
log1p: default out
log1p_: default
log2: default out
log2_: default
log_: default
log_normal: default out
log_normal_: default
log_sigmoid: default out
log_sigmoid_forward: default output
log_softmax: int int_out
logaddexp: default out
logaddexp2: default out
logcumsumexp: default out
logdet: default
logical_and: default out
logical_and_: default
logical_not: default out
logical_not_: default
logical_or: default out
logical_or_: default
logical_xor: default out
logical_xor_: default
logit: default out
logit_: default
logspace: default Scalar_Tensor Scalar_Tensor_out Tensor_Scalar Tensor_Scalar_out Tensor_Tensor
    Tensor_Tensor_out out
logsumexp: default out
lstm: input
lstm_cell: default
lt: Scalar Scalar_out Tensor Tensor_out
lt_: Scalar Tensor
mH: default
mT: default
margin_ranking_loss: default
masked_fill: Scalar Scalar_out Tensor Tensor_out
masked_fill_: Scalar Tensor
masked_scatter: default out
masked_scatter_: default
masked_select: default out
matmul: default out
matrix_H: default
matrix_exp: default
matrix_power: default out
max: default dim dim_max other out unary_out
max_pool1d: default
max_pool1d_with_indices: default
max_pool2d: default
max_pool2d_with_indices: default out
max_pool3d: default
max_pool3d_with_indices: default out
max_unpool2d: default out
max_unpool3d: default out
maximum: default out
mean: default dim dtype_out out
median: default dim dim_values out
meshgrid: default indexing
min: default dim dim_min other out unary_out
minimum: default out
mish: default out
mish_: default
mm: default out
mode: default values
moveaxis: int intlist
movedim: int intlist
mse_loss: default out
msort: default out
mul: Scalar Scalar_out Tensor out
mul_: Scalar Tensor
multi_margin_loss: default out
multilabel_margin_loss: default out
multilabel_margin_loss_forward: default output
multinomial: default out
multiply: Scalar Tensor out
multiply_: Scalar Tensor
mv: default out
mvlgamma: default out
mvlgamma_: default
nan_to_num: default out
nan_to_num_: default
nanmean: default out
nanmedian: default dim dim_values out
nansum: default out
narrow: default Tensor
narrow_copy: default out
native_channel_shuffle: default
native_dropout: default out
native_layer_norm: default out
native_norm: ScalarOpt_dim_dtype_out out
ne: Scalar Scalar_out Tensor Tensor_out
ne_: Scalar Tensor
neg: default out
neg_: default
negative: default out
negative_: default
new_empty: default out
new_empty_strided: default out
new_full: default out
new_ones: default out
new_zeros: default out
nextafter: default out
nextafter_: default
nll_loss: default out
nll_loss2d: default out
nll_loss2d_forward: default output
nll_loss_forward: default output
nll_loss_nd: default
nonzero: default out
nonzero_numpy: default
nonzero_static: default out
norm: Scalar ScalarOpt_dim ScalarOpt_dim_dtype ScalarOpt_dtype ScalarOpt_dtype_out Scalar_out
    dtype_out out
norm_except_dim: default
normal: Tensor_Tensor Tensor_Tensor_out Tensor_float Tensor_float_out float_Tensor
    float_Tensor_out float_float float_float_out out
normal_: default
normal_functional: default
not_equal: Scalar Scalar_out Tensor Tensor_out
not_equal_: Scalar Tensor
nuclear_norm: default dim dim_out out
numpy_T: default
one_hot: default
ones: default out
ones_like: default out
orgqr: default out
ormqr: default out
outer: default out
pad: default
pad_sequence: default
pairwise_distance: default
pdist: default
permute: default
permute_copy: default out
pinverse: default
pixel_shuffle: default out
pixel_unshuffle: default out
poisson: default out
poisson_nll_loss: default
polar: default out
polygamma: default out
polygamma_: default
positive: default
pow: Scalar Scalar_out Tensor_Scalar Tensor_Scalar_out Tensor_Tensor Tensor_Tensor_out
pow_: Scalar Tensor
prelu: default
prod: default dim_int int_out out
promote_types: default
put: default out
put_: default
qr: default Q
rad2deg: default out
rad2deg_: default
rand: default generator generator_out out
rand_like: default generator generator_out out
randint: default generator generator_out low low_generator low_generator_out low_out out
randint_like: default Tensor Tensor_generator Tensor_generator_out Tensor_out generator
    generator_out low_dtype low_dtype_out low_generator_dtype low_generator_dtype_out out
randn: default generator generator_out out
randn_like: default generator generator_out out
random: default from from_out out to to_out
random_: default from to
randperm: default generator generator_out out
range: default out out_ step
ravel: default
real: default
reciprocal: default out
reciprocal_: default
reflection_pad1d: default out
reflection_pad2d: default out
reflection_pad3d: default out
relu: default out
relu6: default
relu6_: default
relu_: default
remainder: Scalar Scalar_Tensor Scalar_Tensor_out Scalar_out Tensor Tensor_out
remainder_: Scalar Tensor
renorm: default out
renorm_: default
repeat: default out
repeat_interleave: Tensor self_Tensor self_int
replication_pad1d: default out
replication_pad2d: default out
replication_pad3d: default out
requires_grad_: default
reshape: default
reshape_as: default
resolve_conj: default
resolve_neg: default
result_type: Scalar Scalar_Scalar Scalar_Tensor Tensor
rms_norm: default
rnn_relu: input
rnn_relu_cell: default
rnn_tanh: input
rnn_tanh_cell: default
roll: default out
rot90: default out
round: default decimals decimals_out out
round_: default decimals
row_stack: default out
rrelu: default
rrelu_: default
rrelu_with_noise: default out
rrelu_with_noise_: default
rrelu_with_noise_functional: default
rsqrt: default out
rsqrt_: default
rsub: Scalar Scalar_out Tensor Tensor_out
scalar_tensor: default out
scaled_dot_product_attention: default
scatter: reduce reduce_out src src_out value value_out value_reduce value_reduce_out
scatter_: reduce src value value_reduce
scatter_add: default out
scatter_add_: default
scatter_reduce: two two_out
scatter_reduce_: two
searchsorted: Scalar Scalar_out Tensor Tensor_out
select: int
select_copy: int int_out
select_scatter: default out
selu: default
selu_: default
sgn: default out
sgn_: default
sigmoid: default out
sigmoid_: default
sign: default out
sign_: default
signbit: default out
silu: default out
silu_: default
sin: default out
sin_: default
sinc: default out
sinc_: default
sinh: default out
sinh_: default
size: int
slice: Tensor
slice_copy: Tensor Tensor_out
slice_scatter: default out
slogdet: default out
slow_conv3d: default out
slow_conv3d_forward: default output
slow_conv_dilated2d: default out
slow_conv_dilated3d: default out
slow_conv_transpose2d: default out
slow_conv_transpose3d: default out
smooth_l1_loss: default out
soft_margin_loss: default out
softmax: int int_out
softplus: default out
softshrink: default out
sort: default stable values values_stable
special_airy_ai: default out
special_bessel_j0: default out
special_bessel_j1: default out
special_bessel_y0: default out
special_bessel_y1: default out
special_chebyshev_polynomial_t: default n_scalar n_scalar_out out x_scalar x_scalar_out
special_chebyshev_polynomial_u: default n_scalar n_scalar_out out x_scalar x_scalar_out
special_chebyshev_polynomial_v: default n_scalar n_scalar_out out x_scalar x_scalar_out
special_chebyshev_polynomial_w: default n_scalar n_scalar_out out x_scalar x_scalar_out
special_digamma: default out
special_entr: default out
special_erf: default out
special_erfc: default out
special_erfcx: default out
special_erfinv: default out
special_exp2: default out
special_expit: default out
special_expm1: default out
special_gammainc: default out
special_gammaincc: default out
special_gammaln: default out
special_hermite_polynomial_h: default n_scalar n_scalar_out out x_scalar x_scalar_out
special_hermite_polynomial_he: default n_scalar n_scalar_out out x_scalar x_scalar_out
special_i0: default out
special_i0e: default out
special_i1: default out
special_i1e: default out
special_laguerre_polynomial_l: default n_scalar n_scalar_out out x_scalar x_scalar_out
special_legendre_polynomial_p: default n_scalar n_scalar_out out x_scalar x_scalar_out
special_log1p: default out
special_log_ndtr: default out
special_log_softmax: default
special_logit: default out
special_logsumexp: default out
special_modified_bessel_i0: default out
special_modified_bessel_i1: default out
special_modified_bessel_k0: default out
special_modified_bessel_k1: default out
special_multigammaln: default out
special_ndtr: default out
special_ndtri: default out
special_polygamma: default out
special_psi: default out
special_round: default out
special_scaled_modified_bessel_k0: default out
special_scaled_modified_bessel_k1: default out
special_shifted_chebyshev_polynomial_t: default n_scalar n_scalar_out out x_scalar x_scalar_out
special_shifted_chebyshev_polynomial_u: default n_scalar n_scalar_out out x_scalar x_scalar_out
special_shifted_chebyshev_polynomial_v: default n_scalar n_scalar_out out x_scalar x_scalar_out
special_shifted_chebyshev_polynomial_w: default n_scalar n_scalar_out out x_scalar x_scalar_out
special_sinc: default out
special_softmax: default
special_spherical_bessel_j0: default out
special_xlog1py: default other_scalar other_scalar_out out self_scalar self_scalar_out
special_xlogy: default other_scalar other_scalar_out out self_scalar self_scalar_out
special_zeta: default other_scalar other_scalar_out out self_scalar self_scalar_out
split: Tensor sizes
split_copy: Tensor Tensor_out
split_with_sizes: default
split_with_sizes_copy: default out
sqrt: default out
sqrt_: default
square: default out
square_: default
squeeze: default dim dims
squeeze_: default dim dims
squeeze_copy: default dim dim_out dims dims_out out
stack: default out
std: default correction correction_names_out correction_out dim out
std_mean: default correction correction_out dim
stft: default center
stride: int
sub: Scalar Scalar_out Tensor out
sub_: Scalar Tensor
subtract: Scalar Tensor out
subtract_: Scalar Tensor
sum: default IntList_out dim_IntList out
sum_to_size: default
svd: default U
swapaxes: default
swapaxes_: default
swapdims: default
swapdims_: default
sym_constrain_range: default
sym_constrain_range_for_size: default
sym_is_contiguous: default
sym_numel: default
sym_size: int
sym_storage_offset: default
sym_stride: int
t: default
t_: default
t_copy: default out
take: default out
take_along_dim: default out
tan: default out
tan_: default
tanh: default out
tanh_: default
tensor_split: indices sections tensor_indices_or_sections
tensordot: default out
thnn_conv2d: default out
threshold: default out
threshold_: default
tile: default
to: device dtype dtype_layout other
topk: default values
trace: default out
transpose: int
transpose_: default
transpose_copy: int int_out
trapezoid: dx x
trapz: dx x
triangular_solve: default X
tril: default out
tril_: default
tril_indices: default out
triplet_margin_loss: default
triu: default out
triu_: default
triu_indices: default out
true_divide: Scalar Tensor out
true_divide_: Scalar Tensor
trunc: default out
trunc_: default
type_as: default
unbind: int
unbind_copy: int int_out
unflatten: int
unflatten_dense_tensors: default
unfold: default
unfold_copy: default out
uniform: default out
uniform_: default
unique_consecutive: default out
unique_dim: default out
unique_dim_consecutive: default out
unsafe_chunk: default
unsafe_split: Tensor Tensor_out
unsafe_split_with_sizes: default out
unsqueeze: default
unsqueeze_: default
unsqueeze_copy: default out
upsample_bicubic2d: default out vec
upsample_bilinear2d: default out vec vec_out
upsample_linear1d: default out vec
upsample_nearest1d: default out vec
upsample_nearest2d: default out vec vec_out
upsample_nearest3d: default out vec
upsample_trilinear3d: default out vec
vander: default
var: default correction correction_names_out correction_out dim out
var_mean: default correction correction_out dim
vdot: default out
view: default dtype
view_as: default
view_as_complex: default
view_as_complex_copy: default out
view_as_real: default
view_as_real_copy: default out
view_copy: default dtype dtype_out out
vsplit: array int
vstack: default out
where: default Scalar ScalarOther ScalarSelf self self_out
xlogy: OutScalar_Other OutScalar_Self OutTensor Scalar_Other Scalar_Self Tensor
xlogy_: Scalar_Other Tensor
zero: default out
zero_: default
zeros: default out
zeros_like: default out
)";

const std::string_view kAllowedScriptFunctions = R"(
Bool Complex ComplexImplicit Delete Float FloatImplicit Int IntImplicit ScalarImplicit Size
__and__ __contains__ __derive_index __getitem__ __interpolate __is__ __isnot__ __lshift__
__not__ __or__ __range_length __round_to_zero_floordiv __rshift__ __upsample __upsample_bilinear
__upsample_nearest __xor__ _grad_sum_to_size _infer_size _list_to_tensor _ncf_unsqueeze
_ncf_view _no_grad_fill_ _no_grad_normal_ _no_grad_uniform_ _no_grad_zero_ _pack_sequence
_set_item _size_if_not_equal _tensor_to_list _unsafe_index _unsafe_index_put _unwrap_optional
acos acosh add add_ all angle any append as_tensor asin asinh atan atan2 atanh bin capitalize
ceil center chr clear copy copy_ copysign cos cosh count cpu degrees device dict dim div divmod
einsum element_size endswith eq erf erfc exp expandtabs expm1 extend fabs factorial find floor
floordiv fmod format frexp gamma gcd ge get get_autocast_dtype get_device gt has_torch_function
hash hex index index_put index_put_ insert is_autocast_cpu_enabled is_autocast_enabled
is_contiguous is_grad_enabled is_non_overlapping_and_dense is_scripting is_strides_like_format
isalnum isalpha isdecimal isdigit isfinite isidentifier isinf islower isnan isnumeric
isprintable isspace istitle isupper items join keys ldexp le len lgamma list ljust log log10
log1p lower lstrip lt mH mT mathremainder matrix_H modf mul mul_ ne neg numel numpy_T oct ord
partition percentFormat polar pop popitem pow radians remainder remove replace reverse rfind
rindex rjust round rpartition rsplit rstrip select set_grad_enabled setdefault sin sinh size
slice sort sorted split splitlines sqrt startswith storage_offset str stride strip sub sum
swapcase sym_size sym_stride tan tanh tensor title to update upper values warn zfill
)";

const std::string_view kAllowedScriptInstructions = R"(
BroadcastSizes CallFunction CallMethod ChunkSizes Constant ConstantChunk CreateObject
DictConstruct DictIndex Enter EnumName EnumValue Exit GetAttr HasAttr If IfThenElse
ListConstruct ListUnpack Load Loop ModuleContainerIndex NumToTensor Param Print RaiseException
ReductionSizes Return SetAttr Store StringIndex TupleConstruct TupleIndex TupleSlice TupleUnpack
Uninitialized VarConcat VarStack abs data device dtype index is_cpu is_cuda is_ipu is_maia
is_meta is_mkldnn is_mps is_mtia is_nested is_quantized is_sparse is_sparse_csr is_vulkan is_xla
is_xpu isinstance itemsize layout max min name nbytes rangelist requires_grad shape tolist type
unchecked_cast unchecked_unwrap_optional unpackTuple AutogradZero AutogradAdd
)";

}  // namespace stagecraft::internal
