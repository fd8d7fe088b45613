"""Modules of torchvision, timm and transformers: one of each family, in small configurations, with random weights."""
import torch
from torch.nn import functional

from cases import case


def careful(parameters):
    """Small steps: at large ones, networks with batch normalisation double any difference in each step, also PyTorch's own."""
    return torch.optim.SGD(parameters, 1e-3, momentum=0.9)


def without_dropout(module):
    """PyTorch and Tutti drop other elements."""
    for one in module.modules():
        for name in ("p", "drop_prob", "dropout", "drop_rate"):
            if isinstance(getattr(one, name, None), float):
                setattr(one, name, 0.0)
    return module


# ---------------------------------------------------------------------------------------------------- torchvision ----

def of_torchvision(name, size=64, loss=None, shapes=None, targets=((), 10), batch=4, **options):
    def make():
        import torchvision
        place = torchvision.models
        for part in name.split("."):
            place = getattr(place, part)
        return without_dropout(place(num_classes=10, **options))
    case(*(shapes or ((3, size, size),)), targets, name=f"torchvision {name.split('.')[-1]}", rule=careful, loss=loss, batch=batch)(make)


def with_helpers(outputs, targets):
    """Inception's classifiers on the way count, too."""
    return functional.cross_entropy(outputs.logits, targets) + sum(0.3 * functional.cross_entropy(one, targets) for one in outputs[1:])


def of_pixels(outputs, targets):
    return functional.cross_entropy(outputs["out"], targets)


SMALL_VISION = {"image_size": 32, "patch_size": 8, "num_layers": 2, "num_heads": 2, "hidden_dim": 24, "mlp_dim": 32}
SMALL_SWIN = {"patch_size": [2, 2], "embed_dim": 12, "depths": [2, 2], "num_heads": [2, 2], "window_size": [4, 4], "stochastic_depth_prob": 0.0}
for name in ("alexnet", "squeezenet1_1", "resnext50_32x4d", "densenet121", "mnasnet0_5", "mobilenet_v2", "mobilenet_v3_small", "shufflenet_v2_x0_5", "efficientnet_b0",
             "regnet_y_400mf"):
    of_torchvision(name)
of_torchvision("googlenet", loss=with_helpers, init_weights=False)
of_torchvision("inception_v3", 96, init_weights=False, aux_logits=False)
of_torchvision("vision_transformer.VisionTransformer", 32, **SMALL_VISION)
of_torchvision("swin_transformer.SwinTransformer", 32, **SMALL_SWIN)
of_torchvision("maxvit.MaxVit", input_size=(64, 64), stem_channels=8, partition_size=2, block_channels=[8, 16], block_layers=[1, 1], head_dim=8, stochastic_depth_prob=0.0)
of_torchvision("segmentation.lraspp_mobilenet_v3_large", loss=of_pixels, targets=((64, 64), 10), weights_backbone=None)
of_torchvision("segmentation.deeplabv3_mobilenet_v3_large", loss=of_pixels, targets=((64, 64), 10), weights_backbone=None)
of_torchvision("video.r3d_18", shapes=((3, 4, 32, 32),))


# ----------------------------------------------------------------------------------------------------------- timm ----

def of_timm(name, size=64, **options):
    def make():
        import timm
        return without_dropout(timm.create_model(name, num_classes=10, **options))
    case((3, size, size), ((), 10), name=f"timm {name}", rule=careful)(make)


for name in ("resnet18", "mobilenetv3_small_050", "ghostnet_050", "regnetx_002", "convnext_atto", "poolformer_s12", "mobilenetv4_conv_small_050", "efficientnet_lite0", "lcnet_050",
             "tinynet_e", "hardcorenas_a", "rexnet_100", "repvgg_a0", "dla46_c", "skresnet18", "seresnext26d_32x4d", "res2net50_26w_4s", "ese_vovnet19b_dw", "inception_next_atto",
             "nf_regnet_b0", "edgenext_xx_small", "convnextv2_atto", "starnet_s050", "mambaout_femto", "repvit_m0_9", "mobilevitv2_050", "pvt_v2_b0", "focalnet_tiny_srf", "cspresnet50"):
    of_timm(name)
for name in ("vit_tiny_patch16_224", "mixer_s32_224", "resmlp_12_224", "gmlp_ti16_224", "xcit_nano_12_p16_224", "deit_tiny_distilled_patch16_224", "cait_xxs24_224", "convit_tiny"):
    of_timm(name, img_size=64)
of_timm("swin_tiny_patch4_window7_224", img_size=64, window_size=4, embed_dim=16, depths=(2, 2), num_heads=(2, 2))
of_timm("coatnet_pico_rw_224", img_size=64)
of_timm("vgg11_bn", mlp_ratio=0.05)
of_timm("levit_128s", 224)
of_timm("mobilevit_xxs")
of_timm("test_nfnet", 96)


# --------------------------------------------------------------------------------------------------- transformers ----

def of_transformers(name, kind, config, *shapes, loss, **options):
    def make():
        import transformers
        return getattr(transformers, kind)(getattr(transformers, config)(**options))
    case(*shapes, loss=loss, name=f"transformers {name}", batch=3)(make)


def logits_of(outputs, targets):
    return functional.cross_entropy(outputs.logits.flatten(0, -2), targets.flatten())


def states_of(outputs, targets):
    return functional.mse_loss(outputs.last_hidden_state, targets)


def pairs_of(outputs, targets):
    """The likeness of each picture and its text."""
    return ((outputs.image_embeds * outputs.text_embeds).sum(-1) - targets).square().mean()


def contrast_of(outputs, targets):
    """Each picture against the texts of all samples."""
    count = torch.arange(outputs.logits_per_image.shape[0])
    return functional.cross_entropy(outputs.logits_per_image, count)


SMALL = {"vocab_size": 50, "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 24, "max_position_embeddings": 16}
NO_DROPOUT = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
PICTURE = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 24, "image_size": 16, "patch_size": 4}
IDS = {"input_ids": ((8,), 50)}
CLIP = {"projection_dim": 12, "text_config": {**SMALL, "bos_token_id": 0, "eos_token_id": 49, "pad_token_id": 1}, "vision_config": PICTURE}
of_transformers("bert", "BertForMaskedLM", "BertConfig", IDS, ((8,), 50), loss=logits_of, **SMALL, **NO_DROPOUT)
of_transformers("roberta classifier", "RobertaForSequenceClassification", "RobertaConfig", IDS, ((), 3), loss=logits_of, num_labels=3, **{**SMALL, "max_position_embeddings": 20}, **NO_DROPOUT)
of_transformers("distilbert", "DistilBertForMaskedLM", "DistilBertConfig", IDS, ((8,), 50), loss=logits_of, vocab_size=50, dim=16, n_layers=2, n_heads=2, hidden_dim=24,
                max_position_embeddings=16, dropout=0.0, attention_dropout=0.0)
of_transformers("gpt2", "GPT2LMHeadModel", "GPT2Config", IDS, ((8,), 50), loss=logits_of, vocab_size=50, n_positions=16, n_embd=16, n_layer=2, n_head=2, resid_pdrop=0.0, embd_pdrop=0.0,
                attn_pdrop=0.0, use_cache=False)
of_transformers("llama", "LlamaForCausalLM", "LlamaConfig", IDS, ((8,), 50), loss=logits_of, **SMALL, num_key_value_heads=1, use_cache=False)
of_transformers("qwen3", "Qwen3ForCausalLM", "Qwen3Config", IDS, ((8,), 50), loss=logits_of, **SMALL, num_key_value_heads=1, head_dim=8, use_cache=False)
of_transformers("t5 encoder", "T5EncoderModel", "T5Config", IDS, (8, 16), loss=states_of, vocab_size=50, d_model=16, d_kv=8, d_ff=24, num_layers=2, num_heads=2, dropout_rate=0.0)
of_transformers("vit", "ViTForImageClassification", "ViTConfig", {"pixel_values": (3, 16, 16)}, ((), 5), loss=logits_of, num_labels=5, **PICTURE, **NO_DROPOUT)
of_transformers("clip", "CLIPModel", "CLIPConfig", {"input_ids": ((8,), 50), "pixel_values": (3, 16, 16)}, (), loss=pairs_of, **CLIP)
of_transformers("clip, contrastive", "CLIPModel", "CLIPConfig", {"input_ids": ((8,), 50), "pixel_values": (3, 16, 16)}, (), loss=contrast_of, **CLIP)
of_transformers("wav2vec2", "Wav2Vec2ForSequenceClassification", "Wav2Vec2Config", {"input_values": (400,)}, ((), 4), loss=logits_of, hidden_size=16, num_hidden_layers=2,
                num_attention_heads=2, intermediate_size=24, conv_dim=(8, 8, 8), conv_stride=(5, 2, 2), conv_kernel=(10, 3, 3), num_feat_extract_layers=3, num_conv_pos_embeddings=8,
                num_conv_pos_embedding_groups=2, hidden_dropout=0.0, attention_dropout=0.0, activation_dropout=0.0, feat_proj_dropout=0.0, final_dropout=0.0, layerdrop=0.0, apply_spec_augment=False,
                num_labels=4, classifier_proj_size=8)


def whisper():
    import transformers
    from transformers.models.whisper.modeling_whisper import WhisperEncoder
    return WhisperEncoder(transformers.WhisperConfig(vocab_size=50, d_model=16, encoder_layers=2, encoder_attention_heads=2, encoder_ffn_dim=24, decoder_layers=1, decoder_attention_heads=2,
                                                     decoder_ffn_dim=24, num_mel_bins=8, max_source_positions=10, dropout=0.0, pad_token_id=0, bos_token_id=1, eos_token_id=2,
                                                     decoder_start_token_id=1))


case({"input_features": (8, 20)}, (10, 16), loss=states_of, name="transformers whisper encoder", batch=3)(whisper)
